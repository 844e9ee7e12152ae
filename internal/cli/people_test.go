package cli_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall"
)

const peopled = `platform:
  clusterName: demo
  tenantDomain: tenants.example.org
  admins: [platform-admins]
  auditors: [platform-auditors]
  classReaders: ["oidc:devs"]
  groupPrefix: "oidc:"
  network: {platformNamespaces: [ingress]}
  nodeClass: {kwok: {}}
  addons: [{apiGroup: monitoring.coreos.com, resources: [servicemonitors]}, {apiGroup: example.org, resources: [reports], readOnly: true}]
pools: {apps: {}}
tenants:
  shop:
    pool: apps
    namespaces: [shop-prod, shop-dev]
    access: [{group: devs, role: operator}, {group: guests, role: viewer}]
    quota: {requests.cpu: 4, count/secrets: 10}
    policy: {storageClasses: ["*"]}
  vault: {pool: apps, network: {egress: Restricted, allowCIDRs: [198.51.100.0/24]}, access: [{group: devs, role: operator}]}
  gone: {pool: apps}
`

// people is a cluster with an estate's walls. It creates kubeconfigs for members of the
// estate's groups, with client certificates.
type people struct {
	*sandbox.Cluster
	t     *testing.T
	admin client.Client
}

func startPeople(t *testing.T) *people {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	p := &people{Cluster: sandbox.Start(t, sandbox.Options{Components: sandbox.WithControllers}), t: t}
	p.admin = p.newClient(p.Config)
	if _, err := install.Install(t.Context(), p.admin, install.Options{}); err != nil {
		t.Fatal(err)
	}
	declaration, problems := manifest.Parse("croft.yaml", []byte(peopled))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	e, problems := estate.Build(declaration)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if _, err := apply.New(p.admin).Apply(t.Context(), append(declaration.Objects(), wall.Objects(e)...)...); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "web"}
	for _, o := range []client.Object{
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: "example.org/fast"},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-prod", Name: "web"}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}}},
		}},
	} {
		if err := p.admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p *people) newClient(config *rest.Config) client.Client {
	p.t.Helper()
	c, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// newConfig returns the client configuration of a user in a group.
func (p *people) newConfig(group string) *rest.Config {
	p.t.Helper()
	config, err := p.ConfigFor("jane", group)
	if err != nil {
		p.t.Fatal(err)
	}
	return config
}

// writeKubeconfig writes a kubeconfig of a user in a group, with a namespace in its context.
func (p *people) writeKubeconfig(group, namespace string) string {
	p.t.Helper()
	c := p.newConfig(group)
	file := clientcmdapi.NewConfig()
	file.Clusters["c"] = &clientcmdapi.Cluster{Server: c.Host, CertificateAuthorityData: c.CAData, CertificateAuthority: c.CAFile}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: c.CertData, ClientKeyData: c.KeyData, ClientCertificate: c.CertFile, ClientKey: c.KeyFile,
	}
	file.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: namespace}
	file.CurrentContext = "x"
	path := filepath.Join(p.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		p.t.Fatal(err)
	}
	return path
}

func (p *people) awaitCondition(t *testing.T, what string, condition func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		last = condition(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, last)
	}
}
