package tenant

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/declared"
)

// newObservation returns the observation of a tenant whose walls are enforced.
func newObservation() *observation {
	return &observation{
		entry:       declared.Entry[estate.Tenant]{Value: &estate.Tenant{Name: "shop", Namespaces: []string{"shop", "shop-db"}, Pools: []string{"apps", "jobs"}, Domains: []string{"shop.example.org"}}},
		hasPlatform: true, applied: true, enforced: true,
	}
}

// newFailedNamespace returns the result of a write of a namespace that failed.
func newFailedNamespace(name string, err error) apply.Change {
	return apply.Change{
		Ref:    apply.Ref{GroupVersionKind: schema.GroupVersionKind{Kind: "Namespace"}, NamespacedName: types.NamespacedName{Name: name}},
		Action: apply.Failed, Err: err,
	}
}

// TestComputeStatus fails if a condition of a Tenant differs from the observation, or if a second
// reconcile changes one.
func TestComputeStatus(t *testing.T) {
	const accepted, applied, enforced, ready = v1alpha1.ConditionAccepted, v1alpha1.ConditionApplied, v1alpha1.ConditionEnforced, v1alpha1.ConditionReady
	const reconciling, stalled = v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled
	type conditions map[string]string
	notOwned := &apply.NamespaceNotOwnedError{Namespace: "shop-db", Tenant: "shop"}
	rejected := apierrors.NewInvalid(schema.GroupKind{Kind: "ResourceQuota"}, "croft", nil)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "rolebindings"}, "x", errors.New("no"))
	for _, test := range []struct {
		name string
		// change is the difference to a tenant whose walls are enforced.
		change func(*observation)
		// want are the conditions, each as its status, its reason and a part of its message.
		want       conditions
		namespaces []string
		// progress is the condition that accompanies Ready, if it is not True.
		progress string
	}{
		{
			"enforced", nil,
			conditions{accepted: "True Accepted", applied: "True Applied", enforced: "True Enforced", ready: "True Ready"},
			[]string{"shop", "shop-db"}, "",
		},
		{
			"enforced, with a limit of the probe", func(s *observation) { s.caveat = "one API server did not answer" },
			conditions{enforced: "True Enforced one API server did not answer", ready: "True Ready"},
			[]string{"shop", "shop-db"}, "",
		},
		{
			"agreed", func(s *observation) { s.entry.Value.Connections = make([]estate.Connection, 1) },
			conditions{v1alpha1.ConditionAgreed: "True Agreed", ready: "True Ready"}, []string{"shop", "shop-db"}, "",
		},
		{
			"one of two consents waits", func(s *observation) {
				s.entry.Value.Connections, s.entry.Value.Pending = make([]estate.Connection, 1), []string{"network.callers.billing: waits for tenant billing"}
			},
			conditions{v1alpha1.ConditionAgreed: "False ConsentPending network.callers.billing: waits for tenant billing", ready: "True Ready"},
			[]string{"shop", "shop-db"}, "",
		},
		{
			"no Platform", func(s *observation) { s.hasPlatform, s.applied, s.enforced, s.entry.Value = false, false, false, nil },
			conditions{accepted: "False NoPlatform", applied: "", enforced: "", ready: "False NoPlatform"}, nil, reconciling,
		},
		{
			"invalid", func(s *observation) {
				s.applied, s.enforced, s.entry.Value = false, false, nil
				s.entry.Problems = document.Problems{{Field: "spec.pool", Message: "there is no pool x"}}
			},
			conditions{accepted: "False Invalid spec.pool: there is no pool x", applied: "", ready: "False Invalid spec.pool: there is no pool x"}, nil, stalled,
		},
		{
			"an object is rejected", func(s *observation) { s.err, s.enforced = rejected, false },
			conditions{accepted: "True Accepted", applied: "False Rejected ResourceQuota", enforced: "", ready: "False Rejected"},
			[]string{"shop", "shop-db"}, stalled,
		},
		{
			"an object cannot be written", func(s *observation) { s.err, s.enforced = errors.New("connection refused"), false },
			conditions{applied: "False ApplyFailed connection refused", enforced: "", ready: "False ApplyFailed"},
			[]string{"shop", "shop-db"}, reconciling,
		},
		{
			"croft lacks a right", func(s *observation) { s.err, s.enforced = forbidden, false },
			conditions{applied: "False ApplyFailed forbidden", enforced: "", ready: "False ApplyFailed"},
			[]string{"shop", "shop-db"}, reconciling,
		},
		{
			"not applied yet", func(s *observation) { s.applied, s.enforced = false, false },
			conditions{accepted: "True Accepted", applied: "", enforced: "", ready: "Unknown Pending " + applied}, nil, reconciling,
		},
		{
			"the cluster lacks Flux", func(s *observation) { s.unserved = errors.New("install Flux") },
			conditions{applied: "False ApplyFailed install Flux", enforced: "True Enforced", ready: "False ApplyFailed install Flux"},
			[]string{"shop", "shop-db"}, stalled,
		},
		{
			"a namespace belongs to no tenant", func(s *observation) {
				s.err, s.changes, s.enforced = notOwned, []apply.Change{newFailedNamespace("shop-db", notOwned)}, false
			},
			conditions{applied: "False NamespaceNotOwned croft adopt tenant shop", enforced: "False NamespaceNotOwned shop-db", ready: "False NamespaceNotOwned"},
			[]string{"shop"}, stalled,
		},
		{
			"a namespace belongs to no tenant, and a probe of the others succeeded", func(s *observation) {
				s.changes = []apply.Change{newFailedNamespace("shop-db", notOwned)}
			},
			conditions{enforced: "False NamespaceNotOwned shop-db", ready: "False NamespaceNotOwned"},
			[]string{"shop"}, stalled,
		},
		{
			"a namespace cannot be written", func(s *observation) {
				s.err, s.enforced = rejected, false
				s.changes = []apply.Change{newFailedNamespace("shop-db", rejected)}
			},
			conditions{applied: "False Rejected", enforced: "", ready: "False Rejected"},
			[]string{"shop"}, stalled,
		},
		{
			"a probe fails", func(s *observation) {
				s.enforced, s.probed, s.reason, s.message = false, true, v1alpha1.ReasonNotEnforcedYet, "the policy has no effect yet"
			},
			conditions{applied: "True Applied", enforced: "False NotEnforcedYet the policy has no effect yet", ready: "False NotEnforcedYet"},
			[]string{"shop", "shop-db"}, reconciling,
		},
		{
			"an API server is behind", func(s *observation) {
				s.enforced, s.probed, s.reason, s.message = false, true, v1alpha1.ReasonAPIServerBehind, "10.0.0.1"
			},
			conditions{applied: "True Applied", enforced: "False APIServerBehind 10.0.0.1", ready: "False APIServerBehind"},
			[]string{"shop", "shop-db"}, reconciling,
		},
		{
			"not probed", func(s *observation) { s.enforced = false },
			conditions{applied: "True Applied", enforced: "", ready: "Unknown Pending " + enforced},
			[]string{"shop", "shop-db"}, reconciling,
		},
		{
			"being deleted", func(s *observation) { s.deleting = true },
			conditions{accepted: "", applied: "", enforced: "", ready: "False Deleting access"}, nil, reconciling,
		},
		{
			"being deleted, with namespaces", func(s *observation) { s.deleting, s.remainingNamespaces = true, []string{"shop", "shop-db"} },
			conditions{ready: "False Deleting shop, shop-db"}, nil, reconciling,
		},
		{
			"being deleted, with an error", func(s *observation) {
				s.deleting, s.remainingNamespaces, s.err = true, []string{"shop"}, errors.New("connection refused")
			},
			conditions{ready: "False Deleting connection refused"}, nil, reconciling,
		},
		{
			"being deleted, and croft lacks a right", func(s *observation) { s.deleting, s.err = true, forbidden },
			conditions{ready: "False Deleting forbidden"}, nil, reconciling,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, tenant := newObservation(), &v1alpha1.Tenant{}
			tenant.Generation = 3
			if test.change != nil {
				test.change(s)
			}
			s.computeStatus(tenant)
			for name, want := range test.want {
				is := meta.FindStatusCondition(tenant.Status.Conditions, name)
				if want == "" && is == nil {
					continue
				}
				parts := append(strings.SplitN(want, " ", 3), "", "")
				if want == "" || is == nil || string(is.Status) != parts[0] || is.Reason != parts[1] || !strings.Contains(is.Message, parts[2]) || is.ObservedGeneration != 3 {
					t.Errorf("%s is %+v, want %q", name, is, want)
				}
			}
			if !slices.Equal(tenant.Status.Namespaces, test.namespaces) {
				t.Errorf("namespaces %v, want %v", tenant.Status.Namespaces, test.namespaces)
			}
			if tenant.Status.ObservedGeneration != 3 {
				t.Errorf("observed generation %d", tenant.Status.ObservedGeneration)
			}
			for _, name := range []string{v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
				if c := meta.FindStatusCondition(tenant.Status.Conditions, name); (c != nil) != (name == test.progress) {
					t.Errorf("%s is %+v, want %q", name, c, test.progress)
				}
			}
			again := tenant.DeepCopy()
			s.computeStatus(again)
			if !equality.Semantic.DeepEqual(tenant, again) {
				t.Errorf("a second reconcile changes the status from %+v to %+v", tenant.Status, again.Status)
			}
		})
	}
}

// TestComputeStatusFields fails if the status of a valid tenant lacks its pools and domains, or
// if an invalid one loses the fields that are in force.
func TestComputeStatusFields(t *testing.T) {
	tenant := &v1alpha1.Tenant{}
	newObservation().computeStatus(tenant)
	check := func(when string) {
		t.Helper()
		if st := &tenant.Status; st.Pool != "apps" || !slices.Equal(st.Pools, []string{"apps", "jobs"}) || !slices.Equal(st.Domains, []string{"shop.example.org"}) {
			t.Errorf("%s: pool %q, pools %v, domains %v", when, st.Pool, st.Pools, st.Domains)
		}
	}
	check("valid")
	s := newObservation()
	s.applied, s.enforced = false, false
	s.entry = declared.Entry[estate.Tenant]{Problems: document.Problems{{Message: "wrong"}}}
	s.computeStatus(tenant)
	check("invalid")
}

// TestProbeDelay fails if the time between probes does not grow with the time since the first
// failure, or exceeds its limits.
func TestProbeDelay(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		since, want time.Duration
	}{
		"no failure":  {0, patienceLeast},
		"just failed": {time.Second, patienceLeast},
		"a while ago": {40 * time.Second, 10 * time.Second},
		"long ago":    {time.Hour, patienceMost},
	} {
		s := &observation{}
		if test.since > 0 {
			s.since = now.Add(-test.since)
		}
		if got := s.getProbeDelay(now); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestNotEnforcedSince fails if the time of the first failed probe is not the time of the
// condition's last transition.
func TestNotEnforcedSince(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		want       time.Time
	}{
		"new":          {nil, time.Time{}},
		"enforced":     {[]metav1.Condition{{Type: v1alpha1.ConditionEnforced, Status: metav1.ConditionTrue, LastTransitionTime: at}}, time.Time{}},
		"not enforced": {[]metav1.Condition{{Type: v1alpha1.ConditionEnforced, Status: metav1.ConditionFalse, LastTransitionTime: at}}, at.Time},
		"another one":  {[]metav1.Condition{{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionFalse, LastTransitionTime: at}}, time.Time{}},
	} {
		tenant := &v1alpha1.Tenant{}
		tenant.Status.Conditions = test.conditions
		if got := notEnforcedSince(tenant); !got.Equal(test.want) {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestDomainsInForce fails if another tenant could get a domain that a namespace still allows.
func TestDomainsInForce(t *testing.T) {
	written := func(name string) apply.Change {
		c := newFailedNamespace(name, nil)
		c.Action = apply.Unchanged
		return c
	}
	shop, db := written("shop"), written("shop-db")
	for _, test := range []struct {
		name    string
		changes []apply.Change
		want    string
	}{
		{"all namespaces have the rules", []apply.Change{shop, db}, "shop.example.org"},
		{"nothing was written", nil, "old.example.org shop.example.org"},
		{"one failed", []apply.Change{shop, newFailedNamespace("shop-db", errors.New("no"))}, "old.example.org shop.example.org"},
		{"one is another tenant's", []apply.Change{shop, newFailedNamespace("shop-db", &apply.NamespaceNotOwnedError{Namespace: "shop-db"})}, "shop.example.org"},
	} {
		s := newObservation()
		s.changes = test.changes
		if got := strings.Join(s.listDomainsInForce([]string{"old.example.org"}), " "); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// TestHasWrittenRules fails if a write of an object that API servers read when they admit a pod does not
// cause a probe, or if a declared object that they do not read causes one.
func TestHasWrittenRules(t *testing.T) {
	change := func(kind string, action apply.Action) apply.Change {
		return apply.Change{Ref: apply.Ref{GroupVersionKind: schema.GroupVersionKind{Kind: kind}}, Action: action}
	}
	for _, test := range []struct {
		changes []apply.Change
		want    bool
	}{
		{nil, false},
		{[]apply.Change{change("ConfigMap", apply.Configured), change("NetworkPolicy", apply.Deleted), change("RoleBinding", apply.Recreated)}, false},
		{[]apply.Change{change("Namespace", apply.Unchanged), change("ConfigMap", apply.Created)}, false},
		{[]apply.Change{change("Namespace", apply.Configured)}, true},
		{[]apply.Change{change("ConfigMap", apply.Created), change("LimitRange", apply.Created)}, true},
		{[]apply.Change{change("Assign", apply.Deleted)}, true},
	} {
		if got := (&observation{changes: test.changes}).hasWrittenRules(); got != test.want {
			t.Errorf("%v: %t", test.changes, got)
		}
	}
}
