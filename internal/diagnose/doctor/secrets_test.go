package doctor

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/secretcopy"
)

// TestCopies expects a finding if no copier runs, and one for each problem that it reports. It needs no
// control plane.
func TestCopies(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	lease := func(age time.Duration, problems string) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: secretcopy.LeaseName, Annotations: map[string]string{secretcopy.ProblemsAnnotation: problems}},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("pod"), RenewTime: ptr.To(metav1.NewMicroTime(now.Add(-age)))},
		}
	}
	copies := []estate.SecretCopy{{Name: "registry", Source: "registry-credentials"}}
	const missing = `[{"source":"registry-credentials","reason":"it does not exist; create it","copies":3,"example":"shop/registry"}]`
	for _, test := range []struct {
		name       string
		lease      *coordinationv1.Lease
		copies     []estate.SecretCopy
		unreadable bool
		want       string
	}{
		{name: "nothing declared"},
		{name: "nothing declared, and an old Lease", lease: lease(time.Hour, "[]")},
		{name: "no tenant declares copies, and somebody else does", lease: lease(time.Second, missing), want: "not copied into 3 namespaces"},
		{name: "no copier", copies: copies, want: "croft copy-secrets has not run yet, and copies of Secrets are declared for shop"},
		{name: "no right to read the Lease", copies: copies, unreadable: true},
		{name: "a stopped copier", copies: copies, lease: lease(time.Hour, "[]"), want: "croft copy-secrets has not run for 60m"},
		{name: "a copier without problems", copies: copies, lease: lease(time.Second, "[]")},
		{name: "a copier of another version", copies: copies, lease: lease(time.Second, "{"), want: "annotation croft.dev/secret-problems"},
		{name: "no source", copies: copies, lease: lease(time.Second, missing), want: "not copied into 3 namespaces, such as shop/registry: it does not exist; create it"},
	} {
		s := &Snapshot{Now: now, Copier: test.lease, Estate: &estate.Estate{Tenants: []*estate.Tenant{{Name: "shop", Secrets: test.copies}}}}
		if test.unreadable {
			s.Unreadable = map[string]string{readCopier: "you may not read them"}
		}
		found := checkCopies(s)
		switch {
		case test.want == "" && len(found) > 0:
			t.Errorf("%s: got %+v, want none", test.name, found)
		case test.want != "" && (len(found) != 1 || !strings.Contains(found[0].Message, test.want) || found[0].Fix == "" || found[0].Object == ""):
			t.Errorf("%s: got %+v, want one with %q and a fix", test.name, found, test.want)
		}
	}
}
