package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"croft.dev/croft/internal/operate/install/installtest"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// writesPolicy logs the writes of all users and their responses, except Leases and Events,
// which are written periodically. The resourceVersion in a response shows whether the
// operator's write changed the object.
const writesPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  resources:
  - {group: coordination.k8s.io, resources: [leases]}
  - {group: "", resources: [events]}
  - {group: events.k8s.io, resources: [events]}
- {level: RequestResponse, verbs: [create, update, patch, delete]}
- {level: None}
`

// readWrites returns the events of an audit log of writesPolicy, without dry runs.
func readWrites(log io.Reader) ([]auditv1.Event, error) {
	all, err := installtest.Events(log)
	return slices.DeleteFunc(all, func(e auditv1.Event) bool { return strings.Contains(e.RequestURI, "dryRun=All") }), err
}

// findRedundantWrites returns the operator's redundant writes: a create for an object that exists
// or was created before, and a write that changed nothing, whose response has an earlier
// resourceVersion.
func findRedundantWrites(events []auditv1.Event) []string {
	var wrong []string
	created, versions := map[string]bool{}, map[string]bool{}
	for i := range events {
		e := &events[i]
		o := e.ObjectRef
		what := strings.TrimSpace(fmt.Sprintf("%s %s/%s %s", e.Verb, o.Resource, o.Subresource, strings.TrimPrefix(o.Namespace+"/"+getObjectName(e), "/")))
		ours := e.User.Username == admissionpolicy.OperatorUser
		if ours && e.Verb == "create" && e.ResponseStatus.Reason == metav1.StatusReasonAlreadyExists {
			wrong = append(wrong, "exists already: "+what)
		}
		if e.ResponseStatus.Code >= http.StatusBadRequest || e.Verb == "delete" {
			continue
		}
		object := strings.Join([]string{o.APIGroup, o.Resource, o.Namespace, getObjectName(e)}, "/")
		if e.ResponseStatus.Code == http.StatusCreated && o.Subresource == "" {
			if ours && created[object] {
				wrong = append(wrong, "created again: "+what)
			}
			created[object] = true
		}
		answer := getMetadata(e)
		if answer.DeletionTimestamp != nil && len(answer.Finalizers) == 0 {
			continue // removing the last finalizer deletes the object, and the response has the previous version
		}
		version := object + "@" + answer.ResourceVersion
		if ours && versions[version] {
			wrong = append(wrong, "changed nothing: "+what)
		}
		versions[version] = true
	}
	slices.Sort(wrong)
	return slices.Compact(wrong)
}

// getMetadata returns the metadata of the object in the API server's response.
func getMetadata(e *auditv1.Event) metav1.ObjectMeta {
	var o metav1.PartialObjectMetadata
	if e.ResponseObject == nil || json.Unmarshal(e.ResponseObject.Raw, &o) != nil {
		return metav1.ObjectMeta{}
	}
	return o.ObjectMeta
}

// getObjectName returns the name of the object. For a create, only the response has it.
func getObjectName(e *auditv1.Event) string {
	if e.ObjectRef.Name != "" {
		return e.ObjectRef.Name
	}
	return getMetadata(e).Name
}

// expectNoRedundantWrites fails if the operators of a cluster with writesPolicy wrote something
// twice.
func (c *cluster) expectNoRedundantWrites(t testing.TB) {
	t.Helper()
	log, err := os.Open(c.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	all, err := readWrites(log)
	if err != nil {
		t.Fatal(err)
	}
	ours := 0
	for i := range all {
		if all[i].User.Username == admissionpolicy.OperatorUser {
			ours++
		}
	}
	if ours < 100 {
		t.Errorf("the log has only %d writes of the operator's", ours)
	}
	again := findRedundantWrites(all)
	t.Logf("%d writes, %d of them of the operators, %d twice", len(all), ours, len(again))
	for _, write := range again {
		t.Error(write)
	}
}

// TestFindRedundantWrites fails if a redundant write is missed, or another write is reported. Default tier.
func TestFindRedundantWrites(t *testing.T) {
	event := func(user, verb, uri, name, subresource string, code int, reason, answer string) string {
		return fmt.Sprintf(`{"verb":%q,"requestURI":%q,"user":{"username":%q},"objectRef":{"resource":"limitranges","namespace":"shop","name":%q,"subresource":%q},"responseStatus":{"code":%d,"reason":%q},"responseObject":{"metadata":%s}}`,
			verb, uri, user, name, subresource, code, reason, answer)
	}
	me := admissionpolicy.OperatorUser
	applied := event(me, "patch", "/a", "croft", "", 201, "", `{"name":"croft","resourceVersion":"1"}`)
	for name, test := range map[string]struct {
		log  []string
		want []string
	}{
		"once":               {[]string{applied, event(me, "patch", "/a", "croft", "", 200, "", `{"resourceVersion":"2"}`)}, nil},
		"a write of nothing": {[]string{applied, event(me, "patch", "/a", "croft", "", 200, "", `{"resourceVersion":"1"}`)}, []string{"changed nothing: patch limitranges/ shop/croft"}},
		"nothing new after another's change": {
			[]string{applied, event("you", "patch", "/a", "croft", "", 200, "", `{"resourceVersion":"3"}`), event(me, "patch", "/a", "croft", "status", 200, "", `{"resourceVersion":"3"}`)},
			[]string{"changed nothing: patch limitranges/status shop/croft"},
		},
		"another writes nothing": {[]string{applied, event("you", "patch", "/a", "croft", "", 200, "", `{"resourceVersion":"1"}`)}, nil},
		"the last finalizer goes": {
			[]string{applied, event(me, "patch", "/a", "croft", "", 200, "", `{"resourceVersion":"1","deletionTimestamp":"2026-01-01T00:00:00Z"}`)}, nil,
		},
		"another object":          {[]string{applied, event(me, "patch", "/a", "other", "", 201, "", `{"resourceVersion":"1"}`)}, nil},
		"created again":           {[]string{applied, event(me, "create", "/a", "", "", 201, "", `{"name":"croft","resourceVersion":"9"}`)}, []string{"created again: create limitranges/ shop/croft"}},
		"a creation that is late": {[]string{applied, event(me, "create", "/a", "croft", "", 409, "AlreadyExists", `{}`)}, []string{"exists already: create limitranges/ shop/croft"}},
		"a conflict":              {[]string{applied, event(me, "patch", "/a", "croft", "", 409, "Conflict", `{}`)}, nil},
		"a dry run":               {[]string{applied, event(me, "create", "/a?dryRun=All", "croft", "", 201, "", `{"resourceVersion":"1"}`)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := readWrites(strings.NewReader(strings.Join(test.log, "\n") + "\n{\"ver"))
			if got := findRedundantWrites(all); err != nil || !slices.Equal(got, test.want) {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}
