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
	Karpenter:         serviceAccount("karpenter", "karpenter"),
	Kwok:              serviceAccount("kube-system", "kwok-controller"),
	Gatekeeper:        serviceAccount(gatekeeper.Namespace, gatekeeper.ServiceAccount),
	Flux:              serviceAccount(fluxNamespace, fluxAccount),
	Git:               serviceAccount(fluxNamespace, sourceAccount),
	Cloud:             serviceAccount("kube-system", "cloud-controller-manager"),
	Croft:             serviceAccount("croft-system", "croft"),
}

func serviceAccount(namespace, name string) pki.Leaf {
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
		content, err := kubeconfig(s.cluster, server, identities[name])
		if err != nil {
			return fmt.Errorf("kubeconfig of %s: %w", name, err)
		}
		if err := home.Write(s.home.Kubeconfig(name), content); err != nil {
			return err
		}
	}
	return nil
}

// KubeconfigFor issues a kubeconfig for any identity, valid for a year.
func KubeconfigFor(h home.Home, user string, groups []string) ([]byte, error) {
	authority, err := ClusterAuthority(h)
	if err != nil {
		return nil, err
	}
	admin, err := clientcmd.LoadFromFile(h.Kubeconfig(Admin))
	if err != nil {
		return nil, err
	}
	return kubeconfig(authority, admin.Clusters[contextName].Server, pki.Leaf{User: user, Groups: groups})
}

// KubeconfigAt returns the administrator's kubeconfig for one of several API servers.
func KubeconfigAt(h home.Home, server string) ([]byte, error) {
	config, err := h.Config()
	if err != nil {
		return nil, err
	}
	if servers := replicas(APIServer, config.APIServers); !slices.Contains(servers, server) {
		return nil, fmt.Errorf("there is no API server %q: choose from %s", server, strings.Join(servers, ", "))
	}
	ports, err := h.Ports()
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

func kubeconfig(authority *pki.Authority, server string, identity pki.Leaf) ([]byte, error) {
	pair, err := authority.Issue(identity)
	if err != nil {
		return nil, err
	}
	return clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			contextName: {Server: server, CertificateAuthorityData: authority.PEM()},
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
