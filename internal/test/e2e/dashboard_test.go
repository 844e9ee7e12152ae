package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/test/sandbox"
)

// TestDashboard fails if one of the dashboard's users cannot use a page or a form in a browser with
// the keyboard alone, sees a name of another tenant, or changes more than the cluster allows; or if a
// page violates a rule of axe-core or its own Content Security Policy, runs a script in a tenant's text, scrolls horizontally on a
// screen of 320 pixels, does not show a change while it is open, or not in the browser's time zone. The screenshots of docs/how-to/dashboard.md come from
//
//	CROFT_TEST_ALL=1 CROFT_SCREENSHOTS=$PWD/docs/images/dashboard go test ./internal/test/e2e -run TestDashboard
func TestDashboard(t *testing.T) {
	sandbox.Thorough(t) // internal/dashboard/server tests each page without a browser and a cluster
	t.Parallel()        // it mostly waits
	d := startDashboard(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *dashboardCluster)
	}{
		{"Stranger", dashboardStranger},
		{"Viewer", dashboardViewer},
		{"Operator", dashboardOperator},
		{"PlatformAdmin", dashboardPlatformAdmin},
		{"Hostile", dashboardHostile},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, d) })
	}
}

// dashboardCluster is a sandbox with two tenants, and with the dashboard behind croft proxy.
type dashboardCluster struct {
	*proxiedCluster
	// url is the dashboard's URL.
	url string
	// certificates is the path of the certificates of the dashboard and of the identity provider.
	certificates string
	// pod is a pod of the tenant shop that runs.
	pod string
}

func startDashboard(t *testing.T) *dashboardCluster {
	t.Helper()
	findBrowser(t)
	const declared = "internal/test/e2e/testdata/dashboard/"
	address := freeAddress(t)
	d := &dashboardCluster{url: "https://" + address}
	idp := startOpenID(t, "DASHBOARD_URL="+d.url)
	c := startWithCroft(t)
	c.apply(t, declared+"croft.yaml")
	c.kubectl(t, read(t, declared+"workloads.yaml"), "apply", "-f", "-").exits(t, 0)
	d.proxiedCluster = addProxy(t, &migratedDocument{cluster: c}, idp, "croft", "dashboard")

	certificate, key := newCertificate(t)
	d.certificates = write(t, readFile(t, certificate)+idp.authority)
	d.spawnCroft(t, "croft-dashboard.log", "dashboard", "--server", d.proxiedCluster.url, "--certificate-authority", write(t, d.authority),
		"--listen", address, "--tls-cert-file", certificate, "--tls-private-key-file", key, "--public-url", d.url,
		"--oidc-issuer-url", idp.issuer, "--oidc-ca-file", idp.AuthorityFile, "--oidc-client-id", "dashboard",
		"--oidc-client-secret-file", write(t, "a secret: 100%"), "--oidc-prompt", "consent")
	local := &http.Client{Timeout: moments, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	eventually(t, moments, "the dashboard to listen", func(context.Context) error {
		answer, err := local.Get(d.url + "/healthz")
		if err == nil {
			answer.Body.Close()
		}
		return err
	})
	d.pod = d.startPods(t)
	return d
}

// startPods waits until the pods of Deployment web run and its other workloads have their problems,
// and gives the pod that it returns a log.
func (d *dashboardCluster) startPods(t *testing.T) (name string) {
	t.Helper()
	eventually(t, patience, "the workloads", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := d.admin.List(ctx, &pods, client.InNamespace("shop"), client.MatchingLabels{"app": "web"}); err != nil {
			return err
		}
		running := 0
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodRunning {
				running++
			}
		}
		if running != 2 {
			return fmt.Errorf("%d pods of web run, want 2", running)
		}
		name = pods.Items[0].Name
		if me := d.croft(t, "me", "-n", "shop"); !strings.Contains(me.stdout, "reports") {
			return fmt.Errorf("the refused pods are not reported: %s", me)
		}
		return nil
	})
	var pod corev1.Pod
	d.get(t, "shop", name, &pod)
	close(d.kubeletOf(t, pod.Spec.NodeName).goOn)
	return name
}

// dashboardStranger fails if a user without access sees a tenant.
func dashboardStranger(t *testing.T, d *dashboardCluster) {
	missing := []string{"Not found"}
	d.browse(t, "joe", []string{"shop", "bank"}, []visit{
		{Name: "start", Path: "/", shows: []string{"Open a namespace"}},
		{Name: "a tenant", Steps: []step{typeInto("Name of a namespace of your tenant", "shop"), press("Open")}, status: 404, shows: missing},
		{Name: "a workload", Path: "/namespaces/shop/workloads/deployment/web", status: 404, shows: missing},
		{Name: "a form", Path: "/namespaces/shop/try", status: 404, shows: missing},
		{Name: "tenants", Path: "/tenants", status: 404, shows: missing},
		{Name: "pools", Path: "/pools", status: 404, shows: missing},
		{Name: "walls", Path: "/walls", status: 404, shows: missing},
		{Name: "log out", Steps: []step{press("Log out")}, Leaves: true},
		{Name: "after the logout", Path: "/", shows: []string{"Log in at your identity provider"}},
	})
}

// dashboardViewer fails if a viewer changes a workload, or is not shown the cluster's refusal.
func dashboardViewer(t *testing.T, d *dashboardCluster) {
	const web = "/namespaces/shop/workloads/deployment/web"
	forbidden := []string{"The cluster refuses this", `User "oidc:jane" cannot patch resource "deployments"`}
	d.browse(t, "jane", []string{"bank", "ledger"}, append(d.listPages(),
		visit{Name: "restart", Path: web, Steps: []step{press("Restart")}, shows: forbidden},
		visit{Name: "scale", Path: web, Steps: []step{typeInto("Replicas", "7"), press("Scale")}, shows: forbidden},
		visit{Name: "try", Path: "/namespaces/shop/try", Steps: []step{typeInto("Manifests in YAML or JSON", triedManifests), press("Try")},
			shows: []string{"2 of 2 objects refused", `User "oidc:jane" cannot create resource`}},
		visit{Name: "another tenant", Path: "/namespaces/bank", status: 404, shows: []string{"Not found"}},
	))
	if web := d.getDeployment(t); *web.Spec.Replicas != 2 || web.Spec.Template.Annotations != nil {
		t.Errorf("the viewer changed the Deployment to %+v", web.Spec)
	}
}

// dashboardOperator fails if an operator cannot restart and scale a workload and try a manifest.
func dashboardOperator(t *testing.T, d *dashboardCluster) {
	const web = "/namespaces/shop/workloads/deployment/web"
	change := d.serveChange(t)
	d.browse(t, "ann", []string{"bank", "ledger"}, append(d.listPages(),
		visit{Name: "live update", Path: web, Zone: "Asia/Kolkata", Steps: []step{typeInto("Replicas", "5")},
			Notify: change, Awaits: liveMessage, shows: []string{" GMT+5:30"}},
		visit{Name: "typed before the update", Steps: []step{press("Scale")}, shows: []string{"Scale deployment/web to 5?"}},
		visit{Name: "restart", Path: web, Steps: []step{press("Restart")}, shows: []string{"Restart deployment/web?", "kubectl rollout restart"}},
		visit{Name: "restarted", Steps: []step{press("Restart")}, shows: []string{"deployment/web in shop", "Each button shows the effect first"}},
		visit{Name: "no scale", Path: web, Steps: []step{typeInto("Replicas", "3"), press("Scale"), press("Back without a change")}, shows: []string{"Each button shows the effect first"}},
		visit{Name: "scale", Steps: []step{typeInto("Replicas", "3"), press("Scale")}, Screenshot: true, shows: []string{"Scale deployment/web to 3?"}},
		visit{Name: "scaled", Steps: []step{press("Scale")}, shows: []string{"deployment/web in shop", "Each button shows the effect first"}},
		visit{Name: "try", Path: "/namespaces/shop/try", Steps: []step{typeInto("Manifests in YAML or JSON", triedManifests), press("Try")}, Screenshot: true,
			shows: []string{"1 of 2 objects refused", "ConfigMap/settings", "Pod/stowaway", "pods tolerate only keys"}},
		visit{Name: "tenants of the user", Path: "/tenants", shows: []string{"shop"}},
		visit{Name: "walls", Path: "/walls", status: 404, shows: []string{"Not found"}},
		visit{Name: "another tenant", Path: "/namespaces/bank", status: 404, shows: []string{"Not found"}},
		visit{Name: "a workload of another tenant", Path: "/namespaces/bank/workloads/deployment/ledger", status: 404, shows: []string{"Not found"}},
		visit{Name: "log out", Steps: []step{press("Log out")}, Leaves: true},
		visit{Name: "after the logout", Path: web, shows: []string{"Log in at your identity provider"}},
	))
	if web := d.getDeployment(t); *web.Spec.Replicas != 3 || web.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] == "" {
		t.Errorf("the Deployment is %+v", web.Spec)
	}
}

// liveMessage is the message of an event.
const liveMessage = "an event while the page is open"

// serveChange returns a URL at which a request creates an event of the Deployment web, which its page
// shows.
func (d *dashboardCluster) serveChange(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := metav1.Now()
		err := d.admin.Create(r.Context(), &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: "shop", GenerateName: "web-"},
			InvolvedObject: corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
			Type:           corev1.EventTypeNormal, Reason: "Tested", Message: liveMessage, FirstTimestamp: now, LastTimestamp: now, Count: 1,
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// triedManifests are an object that an operator may create, and a pod that the walls refuse.
const triedManifests = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
---
apiVersion: v1
kind: Pod
metadata: {name: stowaway}
spec:
  containers: [{name: nginx, image: nginx}]
  tolerations: [{operator: Exists}]
`

// dashboardPlatformAdmin fails if a platform admin does not see each tenant, and the platform's pages.
func dashboardPlatformAdmin(t *testing.T, d *dashboardCluster) {
	d.croft(t, "verify", "--record")
	d.browse(t, "pat", nil, []visit{
		{Name: "start", Path: "/", Screenshot: true, shows: []string{"Your tenants", "shop", "bank", "Platform"}},
		{Name: "tenants", Steps: []step{press("Tenants")}, Screenshot: true, shows: []string{"Search", "shop", "bank"}},
		{Name: "search", Steps: []step{typeInto("Part of the name", "ban"), press("Search")}, shows: []string{"bank-nodes"}},
		{Name: "another tenant", Steps: []step{press("bank")}, shows: []string{"Tenant bank"}},
		{Name: "its workloads", Steps: []step{press("Workloads")}, shows: []string{"ledger"}},
		{Name: "pools", Path: "/pools", Screenshot: true, shows: []string{"Failed launches", "bank-nodes", "m5.large"}},
		{Name: "walls", Path: "/walls", Screenshot: true, shows: []string{"Walls of demo", "held", "Refused pods", "reports"}},
		{Name: "restart", Path: "/namespaces/bank/workloads/deployment/ledger", Steps: []step{press("Restart")}, shows: []string{"Restart deployment/ledger?"}},
	})
}

// listPages returns visits to all pages of the namespace shop, most of them by links. The screenshots
// are the operator's, whose visits are later than the viewer's.
func (d *dashboardCluster) listPages() []visit {
	return []visit{
		{Name: "first page", Path: "/", shows: []string{"Open a namespace", "Your tenants", "shop"}},
		{Name: "overview", Steps: []step{typeInto("Name of a namespace of your tenant", "shop"), press("Open")}, Screenshot: true,
			shows: []string{"Tenant shop", "Problems in shop", "reports", "pods are refused", "You may use"}},
		{Name: "workloads", Steps: []step{press("Workloads")}, Screenshot: true, shows: []string{"web", "search", "reports", "Running"}},
		{Name: "workload", Steps: []step{press("reports")}, Screenshot: true,
			shows: []string{"deployment/reports", "Fix first", "exceeded quota", "croft why deployment/reports -n shop"}},
		{Name: "pod", Path: "/namespaces/shop/workloads/pod/" + d.pod, Screenshot: true, shows: []string{"Log of nginx", "one\ntwo", "kubectl logs"}},
		{Name: "log again", Steps: []step{press("Show")}, shows: []string{"Log of nginx"}},
		{Name: "jobs", Steps: []step{press("Jobs")}, Screenshot: true, shows: []string{"invoices", "cronjob"}},
		{Name: "network", Steps: []step{press("Network")}, Screenshot: true, shows: []string{"Connections of shop", "cannot connect", "NetworkPolicies"}},
		{Name: "hosts", Steps: []step{press("Hosts")}, Screenshot: true, shows: []string{"www.shop.tenants.example.org", "Domains of tenant shop"}},
		{Name: "quota", Steps: []step{press("Quota")}, Screenshot: true, shows: []string{"requests.cpu", "pods"}},
		{Name: "access", Steps: []step{press("Access")}, Screenshot: true, shows: []string{"Who has access", "Group oidc:team-a", "Your access"}},
		{Name: "try form", Steps: []step{press("Try")}, shows: []string{"Manifests in YAML or JSON"}},
		{Name: "nodes of the tenant", Path: "/pools", shows: []string{"Pools and nodes", "m5.large"}},
	}
}

// getDeployment returns the Deployment web of the tenant shop.
func (d *dashboardCluster) getDeployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	web := &appsv1.Deployment{}
	d.get(t, "shop", "web", web)
	return web
}

// press moves the focus to a link or a button, and presses Enter.
func press(label string) step { return step{Label: label} }

// typeInto moves the focus to a field, and types a text.
func typeInto(label, text string) step { return step{Label: label, Text: ptr.To(text)} }
