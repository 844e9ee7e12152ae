package server

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// address is a request for something of a tenant. NS is the namespace, and NAME the name of the object.
type address struct {
	method, path, name string
	form               url.Values
	// status is the status of the response if the tenant is hidden; 404 by default.
	status int
}

// listAddresses returns addresses of pages, objects, logs, streams, changes and searches of a tenant.
func listAddresses() []address {
	var all []address
	add := func(method, name string, form url.Values, paths ...string) {
		for _, path := range paths {
			all = append(all, address{method: method, path: path, name: name, form: form})
		}
	}
	add("GET", "", nil,
		"/namespaces/NS", "/namespaces/NS/workloads", "/namespaces/NS/jobs", "/namespaces/NS/network", "/namespaces/NS/hosts", "/namespaces/NS/quota",
		"/namespaces/NS/access", "/namespaces/NS/try", "/namespaces/NS?live=1", "/namespaces/NS/workloads?live=1", "/namespaces/NS/jobs?live=1",
		"/namespaces/NS/quota?live=1", "/namespaces/NS/hosts/gateways", "/namespaces/NS/hosts/routes")
	add("HEAD", "", nil, "/namespaces/NS", "/namespaces/NS/quota")
	for kind, name := range map[string]string{
		"pod": "web-1", "po": "web-1", "pods": "web-1", "deployment": "web", "deploy": "web", "replicaset": "web-1", "replicationcontroller": "old", "statefulset": "db",
		"daemonset": "agents", "job": "nightly", "cronjob": "invoices", "persistentvolumeclaim": "data", "ingress": "web", "kustomization": "app", "gitrepository": "app",
		"ocirepository": "app", "certificate": "web",
	} {
		add("GET", name, nil, "/namespaces/NS/workloads/"+kind+"/NAME")
	}
	const pod = "/namespaces/NS/workloads/pod/NAME"
	add("GET", "web-1", nil,
		pod+"?container=main", pod+"?container=main&previous=yes", pod+"/log?container=main", pod+"/log?container=side", pod+"/log?container=main&previous=yes", pod+"/log",
		pod+"/exec?command=sh", pod+"/attach", pod+"/portforward", pod+"?live=1", pod+"?live=1&container=main")
	add("GET", "web", nil, "/namespaces/NS/workloads/deployment/NAME?live=1")
	add("GET", "nightly", nil, "/namespaces/NS/workloads/job/NAME?live=1")
	for _, form := range []url.Values{{"replicas": {"0"}}, {"replicas": {"0"}, "confirmed": {"yes"}}} {
		add("POST", "web", form, "/namespaces/NS/workloads/deployment/NAME/restart", "/namespaces/NS/workloads/deployment/NAME/scale")
		add("POST", "db", form, "/namespaces/NS/workloads/statefulset/NAME/restart", "/namespaces/NS/workloads/statefulset/NAME/scale")
		add("POST", "agents", form, "/namespaces/NS/workloads/daemonset/NAME/restart")
	}
	for _, command := range []url.Values{{"container": {"main"}, "command": {"id"}}, {"container": {"other"}, "command": {"id"}}, {"container": {"main"}}} {
		add("POST", "web-2", command, "/namespaces/NS/workloads/pod/NAME/run")
	}
	add("GET", "web-2", nil, pod+"/run?container=main&command=id")
	add("POST", "", url.Values{"manifests": {`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}`}}, "/namespaces/NS/try")
	return append(all,
		address{method: "GET", path: "/open?namespace=NS", status: http.StatusSeeOther}, address{method: "GET", path: "/tenants?q=NS"},
		address{method: "GET", path: "/tenants?q=NS&not-ready=yes"}, address{method: "GET", path: "/tenants?q=NS&live=1"})
}

// observed is everything that a user can observe about a hidden name: the response, and by its time the
// requests that the cluster answers before.
type observed struct {
	status         int
	body, location string
	headers        string
	requests       string
}

// observeRequest sends a request with a namespace and the name of an object. Both are replaced in
// the result, since requests and addresses repeat them.
func observeRequest(a *apiServer, b *browser, csrf string, to address, namespace, name string) observed {
	b.t.Helper()
	form := maps.Clone(to.form)
	if to.method == http.MethodPost {
		form.Set("csrf", csrf)
	}
	a.takeRequests()
	insert := strings.NewReplacer("NS", namespace, "NAME", name)
	got := b.sendRequest(to.method, insert.Replace(to.path), form, nil)
	o := observed{status: got.status, body: strings.ReplaceAll(got.body, namespace, "NS"), location: strings.ReplaceAll(got.header.Get("Location"), namespace, "NS")}
	headers := slices.Sorted(maps.Keys(got.header))
	o.headers = strings.Join(headers, " ")
	var requests []string
	for _, r := range a.takeRequests() {
		path := strings.ReplaceAll(r.URL.RequestURI(), "/namespaces/"+namespace, "/namespaces/NS")
		if name != "" {
			path = strings.ReplaceAll(path, "/"+name, "/NAME")
		}
		requests = append(requests, r.Method+" "+path)
	}
	slices.Sort(requests) // some are sent at the same time
	o.requests = strings.Join(requests, "\n")
	return o
}

// TestNeighbours requests 60 addresses of a tenant, as a member of another tenant and as a user without a
// tenant. They cannot distinguish its names from names that do not exist: not by the status, the body or the
// headers, and not by the time, because the dashboard sends the same requests to the cluster.
func TestNeighbours(t *testing.T) {
	a := startAPIServer(t)
	a.users["eve-token"], a.theirs["eve"] = "eve", "none"
	addresses := listAddresses()
	if len(addresses) < 60 {
		t.Errorf("only %d addresses", len(addresses))
	}
	open := startDashboard(t, a)
	for user, token := range map[string]string{"a neighbour": "bob-token", "a stranger": "eve-token"} {
		b := open().logIn(token)
		csrf := b.findCSRF("/no-such-page")
		missing := b.getPage("/no-such-page")
		for _, to := range addresses {
			t.Run(user+" "+to.method+" "+to.path, func(t *testing.T) {
				hidden := observeRequest(a, b, csrf, to, "shop", to.name)
				for _, other := range [][2]string{{"nowhere", to.name}, {"shop", "no-such-name"}, {"nowhere", "no-such-name"}} {
					if to.name == "" && other[1] != "" {
						continue
					}
					if got := observeRequest(a, b, csrf, to, other[0], other[1]); got != hidden {
						t.Errorf("namespace %s, name %s: %+v\nwant\n%+v", other[0], other[1], got, hidden)
					}
				}
				want := cmp.Or(to.status, http.StatusNotFound)
				if hidden.status != want {
					t.Errorf("status %d, want %d", hidden.status, want)
				}
				if want == http.StatusNotFound && to.method != http.MethodHead && hidden.body != missing.body {
					t.Errorf("the page differs from a page that does not exist:\n%s", hidden.body)
				}
				if strings.Contains(hidden.requests, "PATCH") || strings.Contains(hidden.requests, "dryRun") || strings.Contains(hidden.requests, "/exec") {
					t.Errorf("the dashboard sends a change:\n%s", hidden.requests)
				}
			})
		}
	}
}
