package server

import (
	"strings"
	"testing"
)

// mostRequests is the maximum number of requests to the cluster for a page.
const mostRequests = 3

// TestRequests counts the requests to the cluster for each page. The numbers are independent of the
// number of namespaces of the tenant, and of the number of objects. A page with more than mostRequests
// needs a reason. The page of a workload sends more if its pods have a pool, volumes or a node.
func TestRequests(t *testing.T) {
	a := startAPIServer(t)
	a.objects["/apis/croft.dev/v1alpha1/namespaces/shop/tenantrules/croft"] = strings.Replace(
		a.objects["/apis/croft.dev/v1alpha1/namespaces/shop/tenantrules/croft"], `"namespaces":["shop"]`, `"namespaces":["shop","shop-dev","shop-test","shop-qa"]`, 1)
	a.admins["ana"] = true
	b := startDashboard(t, a)().logIn("ana-token")
	for _, c := range []struct {
		path  string
		limit int
		// reason explains a larger limit than mostRequests.
		reason string
	}{
		{"/", 1, ""},
		{"/tenants", 2, ""},
		{"/pools", 3, ""},
		{"/nodes", 7, "croft latency reads nodes, NodeClaims, three reasons of events, and pods: here only those that wait, and those on each of at most 20 nodes"},
		{"/pools/apps", 7, "as above"},
		{"/walls", 3, ""},
		{"/namespaces/shop", 3, ""},
		{"/namespaces/shop/workloads", 3, ""},
		{"/namespaces/shop/jobs", 3, ""},
		{"/namespaces/shop/workloads/pod/web-1", 6, "why reads each object of the chain from the pod to its node; and the log"},
		{"/namespaces/shop/workloads/pod/web-2", 7, "as above; and the review that decides about the form for commands"},
		{"/namespaces/shop/workloads/deployment/web", 7, "why reads each object of the chain from the Deployment to its nodes"},
		{"/namespaces/shop/workloads/pod/web-1/log?container=main", 1, ""},
		{"/namespaces/shop/network", 3, ""},
		{"/namespaces/shop/hosts", 3, ""},
		{"/namespaces/shop/hosts/gateways", 3, ""},
		{"/namespaces/shop/hosts/routes", 3, ""},
		{"/namespaces/shop/quota", 2, ""},
		{"/namespaces/shop/access", 3, ""},
		{"/namespaces/shop/elevations", 3, ""},
		{"/namespaces/shop/cost", 2, ""},
		{"/costs", 1, ""},
		{"/namespaces/shop/try", 1, ""},
		{"/open?namespace=shop", 0, ""},
	} {
		t.Run(c.path, func(t *testing.T) {
			a.takeRequests()
			if got := b.getPage(c.path); got.status >= 400 {
				t.Fatalf("status %d:\n%s", got.status, got.body)
			}
			requests := a.takeRequests()
			if len(requests) != c.limit {
				var paths []string
				for _, r := range requests {
					paths = append(paths, r.Method+" "+r.URL.String())
				}
				t.Errorf("%d requests, the table has %d:\n%s", len(requests), c.limit, strings.Join(paths, "\n"))
			}
			if (c.limit > mostRequests) != (c.reason != "") {
				t.Errorf("%d requests are allowed, and the reason is %q", c.limit, c.reason)
			}
		})
	}
}
