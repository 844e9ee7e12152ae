package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/report"
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
		{"Stranger", testDashboardStranger},
		{"Viewer", testDashboardViewer},
		{"Operator", testDashboardOperator},
		{"PlatformAdmin", testDashboardPlatformAdmin},
		{"Hostile", testDashboardHostile},
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
	// writeLog is a URL at which a request continues the pod's log, and approve one at which a request approves
	// the operator's request for elevation.
	writeLog, approve string
}

func startDashboard(t *testing.T) *dashboardCluster {
	t.Helper()
	findBrowser(t)
	const declared = "internal/test/e2e/testdata/dashboard/"
	address := findFreeAddress(t)
	d := &dashboardCluster{url: "https://" + address}
	idp := startOpenID(t, "DASHBOARD_URL="+d.url)
	c := startWithCroft(t)
	c.applyFile(t, declared+"croft.yaml")
	c.runKubectl(t, readRepositoryFile(t, declared+"workloads.yaml"), "apply", "-f", "-").expectExit(t, 0)
	d.proxiedCluster = addProxy(t, &migratedDocument{cluster: c}, idp, "croft", "dashboard")

	certificate, key := newCertificate(t)
	d.certificates = writeTempFile(t, readFile(t, certificate)+idp.authority)
	ledger, ledgerCA := serveLedger(t)
	d.startCroft(t, "croft-dashboard.log", "dashboard", "--ledger", ledger, "--ledger-ca-file", ledgerCA, "--server", d.proxiedCluster.url, "--certificate-authority", writeTempFile(t, d.authority),
		"--listen", address, "--tls-cert-file", certificate, "--tls-private-key-file", key, "--public-url", d.url,
		"--oidc-issuer-url", idp.issuer, "--oidc-ca-file", idp.AuthorityFile, "--oidc-client-id", "dashboard",
		"--oidc-client-secret-file", writeTempFile(t, "a secret: 100%"), "--oidc-prompt", "consent")
	local := &http.Client{Timeout: moments, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	awaitCondition(t, moments, "the dashboard to listen", func(context.Context) error {
		answer, err := local.Get(d.url + "/healthz")
		if err == nil {
			answer.Body.Close()
		}
		return err
	})
	d.forbidDiscovery(t)
	d.pod = d.startPods(t)
	d.approve = d.serveApproval(t)
	return d
}

// forbidDiscovery removes the right of users to read the list of the API server's kinds, as some
// clusters do. croft's own processes keep it.
func (d *dashboardCluster) forbidDiscovery(t *testing.T) {
	t.Helper()
	var binding rbacv1.ClusterRoleBinding
	d.getObject(t, "", "system:discovery", &binding)
	binding.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts"}}
	if err := d.admin.Update(t.Context(), &binding); err != nil {
		t.Fatal(err)
	}
	user := rest.CopyConfig(d.Config)
	user.Impersonate = rest.ImpersonationConfig{UserName: "somebody", Groups: []string{"system:authenticated"}}
	clients, err := kubernetes.NewForConfig(user)
	if err != nil {
		t.Fatal(err)
	}
	awaitCondition(t, moments, "discovery to be forbidden", func(context.Context) error {
		_, err := clients.Discovery().ServerGroups()
		switch {
		case apierrors.IsForbidden(err):
			return nil
		case err != nil:
			return err
		default:
			return errors.New("a user reads the API groups")
		}
	})
}

// startPods waits until the pods of Deployment web run and its other workloads have their problems,
// and gives the pod that it returns a log.
func (d *dashboardCluster) startPods(t *testing.T) (name string) {
	t.Helper()
	awaitCondition(t, patience, "the workloads", func(ctx context.Context) error {
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
		if me := d.runCroft(t, "me", "-n", "shop"); !strings.Contains(me.stdout, "reports") {
			return fmt.Errorf("the refused pods are not reported: %s", me)
		}
		return nil
	})
	var pod corev1.Pod
	d.getObject(t, "shop", name, &pod)
	kubelet := d.startKubelet(t, pod.Spec.NodeName)
	d.writeLog = serveOnce(t, func() { close(kubelet.goOn) })
	return name
}

// serveOnce returns a URL at which the first request makes a change.
func serveOnce(t *testing.T, change func()) string {
	t.Helper()
	once := sync.OnceFunc(change)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { once() }))
	t.Cleanup(server.Close)
	return server.URL
}

// serveApproval returns a URL at which a request approves the operator's request for elevation, as a platform
// admin.
func (d *dashboardCluster) serveApproval(t *testing.T) string {
	t.Helper()
	config := rest.CopyConfig(d.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "oidc:pat", Groups: []string{"oidc:platform-admins", "system:authenticated"}}
	approver, err := client.New(config, client.Options{Scheme: d.admin.Scheme(), Mapper: d.admin.RESTMapper()}) // without discovery
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var all v1alpha1.ElevationList
		err := approver.List(r.Context(), &all, client.InNamespace("shop"))
		for i := range all.Items {
			if e := &all.Items[i]; e.Spec.RequestedBy == "oidc:ann" && err == nil {
				before := e.DeepCopy()
				e.Spec.ApprovedBy = "oidc:pat"
				err = approver.Patch(r.Context(), e, client.MergeFrom(before))
			}
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// serveLedger returns the URL of a ledger, and the file with its certificate. The sandbox's own ledger would
// not accept the users' logins, which only croft proxy knows.
func serveLedger(t *testing.T) (address, authority string) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		names := map[string][]string{"tenant": {"shop", "bank", "(idle)"}, "workload": {"shop Deployment/web", "shop Deployment/search"}}
		_ = json.NewEncoder(w).Encode(makeHistory(r.URL.Query().Get("by"), names[r.URL.Query().Get("by")]))
	}))
	t.Cleanup(server.Close)
	return server.URL, writeTempFile(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
}

// makeHistory returns the costs of six months, which are the same at each run.
func makeHistory(by string, names []string) *report.History {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	h := &report.History{Now: now, Currency: "USD", By: by, Forecast: &report.Forecast{BaseFrom: now.Truncate(day).Add(-7 * day), BaseUntil: now.Truncate(day), Total: &report.ForecastLine{Month: 1130 * money.Unit}}}
	for i, total := range []money.Amount{610, 695, 720, 940, 1015, 735} {
		from := time.Date(2026, time.Month(6+i), 1, 0, 0, 0, 0, time.UTC)
		h.Months = append(h.Months, report.Sum{From: from, Until: from.AddDate(0, 1, 0), Total: total * money.Unit})
	}
	for i := range 31 {
		from := now.Truncate(day).Add(time.Duration(i-30) * day)
		h.Days = append(h.Days, report.Sum{From: from, Until: from.Add(day), Total: money.Amount(30+i*7%13) * money.Unit})
	}
	for i, name := range names {
		line := &report.Line{Name: name, Cost: money.Amount(420-150*i) * money.Unit, Idle: money.Amount(40-10*i) * money.Unit}
		line.Total = line.Cost + line.Idle
		h.ThisMonth = append(h.ThisMonth, line)
		h.LastMonth = append(h.LastMonth, &report.Line{Name: name, Total: line.Total + 90*money.Unit})
		h.Forecast.Lines = append(h.Forecast.Lines, &report.ForecastLine{Name: name, Month: line.Total * 3 / 2})
	}
	return h
}

// day is a day without a change of the clock.
const day = 24 * time.Hour

// testDashboardStranger fails if a user without access sees a tenant.
func testDashboardStranger(t *testing.T, d *dashboardCluster) {
	missing := []string{"Not found"}
	d.browsePages(t, "joe", []string{"shop", "bank"}, []visit{
		{Name: "start", Path: "/", shows: []string{"Open a namespace"}},
		{Name: "a tenant", Steps: []step{enterText("Name of a namespace of your tenant", "shop"), pressControl("Open")}, status: 404, shows: missing},
		{Name: "a workload", Path: "/namespaces/shop/workloads/deployment/web", status: 404, shows: missing},
		{Name: "a form", Path: "/namespaces/shop/try", status: 404, shows: missing},
		{Name: "tenants", Path: "/tenants", status: 404, shows: missing},
		{Name: "pools", Path: "/pools", status: 404, shows: missing},
		{Name: "starts of nodes", Path: "/nodes", status: 404, shows: missing},
		{Name: "walls", Path: "/walls", status: 404, shows: missing},
		{Name: "costs", Path: "/namespaces/shop/cost", status: 404, shows: missing},
		{Name: "elevations", Path: "/namespaces/shop/elevations", status: 404, shows: missing},
		{Name: "log out", Steps: []step{pressControl("Log out")}, Leaves: true},
		{Name: "after the logout", Path: "/", shows: []string{"Log in at your identity provider"}},
	})
}

// testDashboardViewer fails if a viewer changes a workload, or is not shown the cluster's refusal.
func testDashboardViewer(t *testing.T, d *dashboardCluster) {
	const web = "/namespaces/shop/workloads/deployment/web"
	forbidden := []string{"The cluster refuses this", `User "oidc:jane" cannot patch resource "deployments"`}
	d.browsePages(t, "jane", []string{"bank", "loans", "Run a command"}, append(d.listPages(),
		visit{Name: "restart", Path: web, Steps: []step{pressControl("Restart")}, shows: forbidden},
		visit{Name: "scale", Path: web, Steps: []step{enterText("Replicas", "7"), pressControl("Scale")}, shows: forbidden},
		visit{Name: "try", Path: "/namespaces/shop/try", Steps: []step{enterText("Manifests in YAML or JSON", triedManifests), pressControl("Try")},
			shows: []string{"2 of 2 objects refused", `User "oidc:jane" cannot create resource`}},
		visit{Name: "too short", Path: "/namespaces/shop/elevations", Steps: []step{enterText("Duration, at least 15m", "5m"), enterText(reasonLabel, "INC-41"), pressControl("Request")},
			shows: []string{"the duration must be between 15m and 24h"}},
		visit{Name: "request", Path: "/namespaces/shop/elevations", Steps: []step{enterText(reasonLabel, "INC-42: the queue is stuck"), pressControl("Request")},
			shows: []string{"oidc:jane requests the role operator in namespace shop for 1h: INC-42: the queue is stuck"}},
		visit{Name: "requested", Steps: []step{pressControl("Request")}, shows: []string{"Pending", "INC-42"}},
		visit{Name: "another tenant", Path: "/namespaces/bank", status: 404, shows: []string{"Not found"}},
	))
	if web := d.getDeployment(t); *web.Spec.Replicas != 2 || web.Spec.Template.Annotations != nil {
		t.Errorf("the viewer changed the Deployment to %+v", web.Spec)
	}
}

// testDashboardOperator fails if an operator cannot restart and scale a workload and try a
// manifest.
func testDashboardOperator(t *testing.T, d *dashboardCluster) {
	const web = "/namespaces/shop/workloads/deployment/web"
	change := d.serveChange(t)
	d.browsePages(t, "ann", []string{"bank", "loans"}, append(d.listPages(),
		visit{Name: "command", Path: "/namespaces/shop/workloads/pod/" + d.pod, Steps: []step{enterText("Command", "echo it's"), pressControl("Run")}, Screenshot: true, shows: []string{
			"The command ended with exit code 3", `["sh" "-c" "echo it's"]`, `<b>\x1b[31mfailed\u200b`, "kubectl exec pod/" + d.pod + ` -c nginx -n shop -- sh -c 'echo it'\''s'`,
		}},
		visit{Name: "command again", Steps: []step{pressControl("Run")}, shows: []string{`["sh" "-c" "echo it's"]`}},
		visit{Name: "after the command", Steps: []step{pressControl("Back to the pod")}, shows: []string{"Log of nginx", "Run a command"}},
		visit{Name: "live update", Path: web, Zone: "Asia/Kolkata", Steps: []step{enterText("Replicas", "5")},
			Notify: change, Awaits: liveMessage, shows: []string{" GMT+5:30"}},
		visit{Name: "typed before the update", Steps: []step{pressControl("Scale")}, shows: []string{"Scale deployment/web to 5?"}},
		visit{Name: "restart", Path: web, Steps: []step{pressControl("Restart")}, shows: []string{"Restart deployment/web?", "kubectl rollout restart"}},
		visit{Name: "restarted", Steps: []step{pressControl("Restart")}, shows: []string{"deployment/web in shop", "Each button shows the effect first"}},
		visit{Name: "no scale", Path: web, Steps: []step{enterText("Replicas", "3"), pressControl("Scale"), pressControl("Back without a change")}, shows: []string{"Each button shows the effect first"}},
		visit{Name: "scale", Steps: []step{enterText("Replicas", "3"), pressControl("Scale")}, Screenshot: true, shows: []string{"Scale deployment/web to 3?"}},
		visit{Name: "scaled", Steps: []step{pressControl("Scale")}, shows: []string{"deployment/web in shop", "Each button shows the effect first"}},
		visit{Name: "try", Path: "/namespaces/shop/try", Steps: []step{enterText("Manifests in YAML or JSON", triedManifests), pressControl("Try")}, Screenshot: true,
			shows: []string{"1 of 2 objects refused", "ConfigMap/settings", "Pod/stowaway", "pods tolerate only keys"}},
		visit{Name: "tenants of the user", Path: "/tenants", shows: []string{"shop"}},
		visit{Name: "walls", Path: "/walls", status: 404, shows: []string{"Not found"}},
		visit{Name: "another tenant", Path: "/namespaces/bank", status: 404, shows: []string{"Not found"}},
		visit{Name: "a workload of another tenant", Path: "/namespaces/bank/workloads/deployment/loans", status: 404, shows: []string{"Not found"}},
		visit{Name: "request", Path: "/namespaces/shop/elevations", Steps: []step{enterText("Duration, at least 15m", "30m"), enterText(reasonLabel, "INC-43"), pressControl("Request")},
			shows: []string{"Request an elevation in shop?", "for 30m: INC-43", "croft elevate --tenant shop"}},
		visit{Name: "elevations", Steps: []step{pressControl("Request")}, Notify: d.approve, Awaits: "granted (approved by oidc:pat)", Screenshot: true,
			shows: []string{"oidc:jane requests", "until", "Use"}},
		visit{Name: "elevated", Steps: []step{pressControl("Use")}, shows: []string{"Tenant shop", "system:serviceaccount:croft-elevations:oidc-ann-"}},
		visit{Name: "log out", Steps: []step{pressControl("Log out")}, shows: []string{"Log in at your identity provider"}},
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

// reasonLabel is the label of the field for the reason of an elevation.
const reasonLabel = "Reason, for the approver and the record"

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

// testDashboardPlatformAdmin fails if a platform admin does not see each tenant, and the platform's
// pages.
func testDashboardPlatformAdmin(t *testing.T, d *dashboardCluster) {
	d.runCroft(t, "verify", "--record")
	d.addBreach(t)
	d.browsePages(t, "pat", nil, []visit{
		{Name: "start", Path: "/", Screenshot: true, shows: []string{"Your tenants", "shop", "bank", "Platform"}},
		{Name: "tenants", Steps: []step{pressControl("Tenants")}, Screenshot: true, shows: []string{"alive, on", "Search", "shop", "bank"}},
		{Name: "search", Steps: []step{enterText("Part of the name", "ban"), pressControl("Search")}, shows: []string{"bank-nodes"}},
		{Name: "another tenant", Steps: []step{pressControl("bank")}, shows: []string{"Tenant bank"}},
		{Name: "its workloads", Steps: []step{pressControl("Workloads")}, shows: []string{"loans"}},
		{Name: "pools", Path: "/pools", Screenshot: true, shows: []string{"Failed launches", "bank-nodes", "m5.large"}},
		{Name: "starts", Steps: []step{pressControl("Starts of nodes")}, Screenshot: true, shows: []string{"decision: Karpenter decides", "bank-nodes", "croft latency --since 0"}},
		{Name: "starts in a pool", Path: "/pools/bank-nodes", shows: []string{"Starts of nodes of pool bank-nodes", "--pool bank-nodes"}},
		{Name: "walls", Path: "/walls", Screenshot: true, shows: []string{"Walls of demo", "held", "Verifications", "nodes/planted", "Refused pods", "reports"}},
		{Name: "platform cost", Path: "/costs", Screenshot: true, shows: []string{"Cost of the platform", "1130.00 expected", "bank"}},
		{Name: "approval", Path: "/namespaces/shop/elevations", Steps: []step{pressControl("Approve")}, Screenshot: true, shows: []string{"oidc:jane requests the role operator", "croft elevate approve oidc-jane-"}},
		{Name: "approved", Steps: []step{pressControl("Approve")}, shows: []string{"oidc:pat", "Record"}},
		{Name: "restart", Path: "/namespaces/bank/workloads/deployment/loans", Steps: []step{pressControl("Restart")}, shows: []string{"Restart deployment/loans?"}},
	})
}

// addBreach adds an earlier result with a breach to the history of verify.
func (d *dashboardCluster) addBreach(t *testing.T) {
	t.Helper()
	var platform v1alpha1.Platform
	d.getObject(t, "", v1alpha1.PlatformName, &platform)
	if platform.Status.Verify == nil {
		t.Fatal("croft verify --record has recorded nothing")
	}
	before := platform.DeepCopy()
	earlier := *platform.Status.Verify
	earlier.Time = metav1.NewTime(earlier.Time.Add(-day))
	earlier.Held, earlier.Breached, earlier.FirstBreach = earlier.Held-1, 1, "nodes/planted"
	platform.Status.VerifyHistory = append(platform.Status.VerifyHistory, earlier)
	if err := d.admin.Status().Patch(t.Context(), &platform, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// listPages returns visits to all pages of the namespace shop, most of them by links. The screenshots
// are the operator's, whose visits are later than the viewer's.
func (d *dashboardCluster) listPages() []visit {
	return []visit{
		{Name: "first page", Path: "/", shows: []string{"Open a namespace", "Your tenants", "shop"}},
		{Name: "overview", Steps: []step{enterText("Name of a namespace of your tenant", "shop"), pressControl("Open")}, Screenshot: true,
			shows: []string{"Tenant shop", "Problems in shop", "reports", "pods are refused", "You may use"}},
		{Name: "workloads", Steps: []step{pressControl("Workloads")}, Screenshot: true, shows: []string{"web", "search", "reports", "Running"}},
		{Name: "workload", Steps: []step{pressControl("reports")}, Screenshot: true,
			shows: []string{"deployment/reports", "Fix first", "exceeded quota", "croft why deployment/reports -n shop"}},
		{Name: "pod", Path: "/namespaces/shop/workloads/pod/" + d.pod, Notify: d.writeLog, Awaits: "The container has ended", Screenshot: true, shows: []string{"Log of nginx", "one\ntwo", "kubectl logs"}},
		{Name: "log again", Steps: []step{pressControl("Show")}, shows: []string{"Log of nginx"}},
		{Name: "jobs", Steps: []step{pressControl("Jobs")}, Screenshot: true, shows: []string{"invoices", "cronjob"}},
		{Name: "network", Steps: []step{pressControl("Network")}, Screenshot: true, shows: []string{"Connections of shop", "cannot connect", "NetworkPolicies"}},
		{Name: "hosts", Steps: []step{pressControl("Hosts")}, Screenshot: true, shows: []string{"www.shop.tenants.example.org", "Domains of tenant shop"}},
		{Name: "quota", Steps: []step{pressControl("Quota")}, Screenshot: true, shows: []string{"requests.cpu", "pods"}},
		{Name: "cost", Steps: []step{pressControl("Cost")}, Screenshot: true, shows: []string{"Cost of tenant shop", "2026-11", "Deployment/web", "croft cost"}},
		{Name: "cost again", Steps: []step{pressControl("Show")}, shows: []string{"This month by workload"}},
		{Name: "access", Steps: []step{pressControl("Access")}, Screenshot: true, shows: []string{"Who has access", "Group oidc:team-a", "Your access"}},
		{Name: "try form", Steps: []step{pressControl("Try")}, shows: []string{"Manifests in YAML or JSON"}},
		{Name: "nodes of the tenant", Path: "/pools", shows: []string{"Pools and nodes", "m5.large"}},
		{Name: "starts of the tenant's nodes", Steps: []step{pressControl("Starts of nodes")}, shows: []string{"You may not list NodeClaims", "m5.large"}},
	}
}

// getDeployment returns the Deployment web of the tenant shop.
func (d *dashboardCluster) getDeployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	web := &appsv1.Deployment{}
	d.getObject(t, "shop", "web", web)
	return web
}

// pressControl moves the focus to a link or a button, and presses Enter.
func pressControl(label string) step { return step{Label: label} }

// enterText moves the focus to a field, and types a text.
func enterText(label, text string) step { return step{Label: label, Text: ptr.To(text)} }
