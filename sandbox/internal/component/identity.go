package component

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"croft.dev/croft/sandbox/internal/gatekeeper"
	"croft.dev/croft/sandbox/internal/home"
	"croft.dev/croft/sandbox/internal/pki"
)

// Admin is the identity of the sandbox's user.
const Admin = "admin"

var adminIdentity = pki.Leaf{User: "sandbox-admin", Groups: []string{"system:masters"}}

// identities are the components' users at the API server. Components that run as pods on
// other clusters have the same service accounts here, so that rules about those apply in
// a sandbox too.
var identities = map[string]pki.Leaf{
	Admin:             adminIdentity,
	ControllerManager: {User: "system:kube-controller-manager"},
	Scheduler:         {User: "system:kube-scheduler"},
	Karpenter:         newServiceAccount("karpenter", "karpenter"),
	Kwok:              newServiceAccount("kube-system", "kwok-controller"),
	Gatekeeper:        newServiceAccount(gatekeeper.Namespace, gatekeeper.ServiceAccount),
	Flux:              newServiceAccount(fluxNamespace, fluxAccount),
	Git:               newServiceAccount(fluxNamespace, sourceAccount),
	Cloud:             newServiceAccount("kube-system", "cloud-controller-manager"),
	Croft:             newServiceAccount("croft-system", "croft"),
}

func newServiceAccount(namespace, name string) pki.Leaf {
	return pki.Leaf{
		User:   "system:serviceaccount:" + namespace + ":" + name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace},
	}
}

// writeKubeconfigs writes the kubeconfigs of all identities. It runs before each start of the
// API server, whose address may have changed.
func (s *Sandbox) writeKubeconfigs() error {
	server := "https://" + s.ports.Address(APIServer)
	for _, name := range slices.Sorted(maps.Keys(identities)) {
		content, err := buildKubeconfig(s.cluster, server, identities[name])
		if err != nil {
			return fmt.Errorf("kubeconfig of %s: %w", name, err)
		}
		if err := home.Write(s.home.Kubeconfig(name), content); err != nil {
			return err
		}
	}
	return nil
}

// IssueKubeconfig issues a kubeconfig for any identity, valid for a year.
func IssueKubeconfig(h home.Home, user string, groups []string) ([]byte, error) {
	authority, err := LoadClusterAuthority(h)
	if err != nil {
		return nil, err
	}
	admin, err := clientcmd.LoadFromFile(h.Kubeconfig(Admin))
	if err != nil {
		return nil, err
	}
	return buildKubeconfig(authority, admin.Clusters[contextName].Server, pki.Leaf{User: user, Groups: groups})
}

// BuildAdminKubeconfig returns the administrator's kubeconfig for one of several API servers.
func BuildAdminKubeconfig(h home.Home, server string) ([]byte, error) {
	config, err := h.ReadConfig()
	if err != nil {
		return nil, err
	}
	if servers := nameReplicas(APIServer, config.APIServers); !slices.Contains(servers, server) {
		return nil, fmt.Errorf("there is no API server %q: choose from %s", server, strings.Join(servers, ", "))
	}
	ports, err := h.ReadPorts()
	if err != nil {
		return nil, err
	}
	admin, err := clientcmd.LoadFromFile(h.Kubeconfig(Admin))
	if err != nil {
		return nil, err
	}
	admin.Clusters[contextName].Server = "https://" + ports.Address(server)
	return clientcmd.Write(*admin)
}

const contextName = "croft-sandbox"

func buildKubeconfig(authority *pki.Authority, server string, identity pki.Leaf) ([]byte, error) {
	pair, err := authority.Issue(identity)
	if err != nil {
		return nil, err
	}
	return clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			contextName: {Server: server, CertificateAuthorityData: authority.EncodePEM()},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{
			identity.User: {ClientCertificateData: pair.Cert, ClientKeyData: pair.Key},
		},
		Contexts: map[string]*clientcmdapi.Context{
			contextName: {Cluster: contextName, AuthInfo: identity.User},
		},
		CurrentContext: contextName,
	})
}
