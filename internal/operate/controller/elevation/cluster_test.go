package elevation_test

import (
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/elevation"
)

// fixture is a cluster with croft installed.
type fixture struct{ *operatortest.Fixture }

// TestElevation covers elevations on one control plane. Each subtest has its own tenant.
func TestElevation(t *testing.T) {
	sandbox.EndToEnd(t)
	f := operatortest.Start(t, sandbox.WithControllers)
	stop := f.Operate()
	defer func() { stop() }()
	p := operatortest.NewPlatform()
	p.Spec.Elevation = &v1alpha1.PlatformElevation{MaxDuration: metav1.Duration{Duration: time.Hour}, Approvers: []string{"leads"}}
	f.Create(p, operatortest.NewPool("apps"))
	t.Run("Room", func(t *testing.T) { testRoom(t, &fixture{f.For(t)}) })
	t.Run("Life", func(t *testing.T) { testLife(t, &fixture{f.For(t)}, &stop) })
}

// testLife follows an elevation from its request to its end, which is reached while
// the operator is stopped. The API server issues no token for less than 10 minutes. Instead
// of waiting, the test signs the same token with another expiry, with the cluster's own
// key, and the API server validates it by its own clock.
func testLife(t *testing.T, f *fixture, stop *func()) {
	shop := operatortest.NewTenant("shop", "apps")
	shop.Spec.Access[0].Role = v1alpha1.RoleViewer
	shop.Spec.Namespaces = []string{"shop", "shop-db"}
	f.Create(shop, operatortest.NewTenant("bank", "apps"))

	eve, ann := f.Impersonate("eve", "shop-devs"), f.Impersonate("ann", "leads")
	key, public, err := elevation.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	request := func(change func(*v1alpha1.Elevation)) *v1alpha1.Elevation {
		e := &v1alpha1.Elevation{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "eve-1"},
			Spec: v1alpha1.ElevationSpec{
				RequestedBy: "eve", Role: v1alpha1.ElevationOperator, Duration: metav1.Duration{Duration: 20 * time.Minute},
				Reason: "INC-42: the queue is stuck", PublicKey: public,
			},
		}
		if change != nil {
			change(e)
		}
		return e
	}
	e := request(nil)
	f.Await("eve to be let in", func() string {
		if err := eve.Create(t.Context(), request(nil), client.DryRunAll); err != nil {
			return err.Error()
		}
		return ""
	})
	f.Await("the policy to hold", func() string {
		if err := eve.Create(t.Context(), request(func(e *v1alpha1.Elevation) { e.Spec.RequestedBy = "mallory" }), client.DryRunAll); err == nil {
			return "requested in another's name"
		}
		return ""
	})
	for _, test := range []struct {
		name   string
		change func(*v1alpha1.Elevation)
		why    string
	}{
		{"in another's name", func(e *v1alpha1.Elevation) { e.Spec.RequestedBy = "mallory" }, "[requested-by]"},
		{"for too long", func(e *v1alpha1.Elevation) { e.Spec.Duration.Duration = 2 * time.Hour }, "[max-duration]"},
		{"for very short", func(e *v1alpha1.Elevation) { e.Spec.Duration.Duration = time.Minute }, "must be between 15m and 24h"},
		{"approved beforehand", func(e *v1alpha1.Elevation) { e.Spec.ApprovedBy = "ann" }, "[approved-by]"},
		{"a role beyond operator", func(e *v1alpha1.Elevation) { e.Spec.Role = "cluster-admin" }, "Unsupported value"},
		{"without a reason", func(e *v1alpha1.Elevation) { e.Spec.Reason = " " }, "write the reason in one line"},
		{"in another tenant", func(e *v1alpha1.Elevation) { e.Namespace = "bank" }, "cannot create resource"},
	} {
		f.AssertRefused("a request "+test.name, eve.Create(t.Context(), request(test.change), client.DryRunAll), test.why)
	}
	if err := eve.Create(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	f.AwaitPhase(e, v1alpha1.ElevationPending)

	patch := func(c client.Client, body string, options ...client.PatchOption) error {
		return c.Patch(t.Context(), e.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body)), options...)
	}
	f.Await("approvers to be let in", func() string {
		if err := patch(ann, `{"spec":{"approvedBy":"ann"}}`, client.DryRunAll); err != nil {
			return err.Error()
		}
		return ""
	})
	f.AssertRefused("eve approves", patch(eve, `{"spec":{"approvedBy":"eve"}}`), "cannot patch resource")
	f.AssertRefused("eve approves as an approver", patch(f.Impersonate("eve", "shop-devs", "leads"), `{"spec":{"approvedBy":"eve"}}`), "[second-person]")
	f.AssertRefused("ann approves as bob", patch(ann, `{"spec":{"approvedBy":"bob"}}`), "[approved-by]")
	f.AssertRefused("ann approves for longer", patch(ann, `{"spec":{"approvedBy":"ann","duration":"1h"}}`), "a request cannot be changed")
	f.AssertRefused("ann approves for her own key", patch(ann, `{"spec":{"approvedBy":"ann","publicKey":"`+strings.Repeat("B", 43)+`="}}`), "a request cannot be changed")
	f.AssertRefused("an account of the tenant approves", patch(f.Impersonate("system:serviceaccount:shop:default"), `{"spec":{"approvedBy":"x"}}`), "cannot patch resource")
	for who, c := range map[string]client.Client{"eve": eve, "ann": ann} {
		f.AssertRefused(who+" forges the status", c.Status().Patch(t.Context(), e.DeepCopy(),
			client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Active","until":"2036-01-01T00:00:00Z"}}`))), "cannot patch resource")
		f.AssertRefused(who+" removes the record", c.Delete(t.Context(), e.DeepCopy()), "cannot delete resource")
	}
	if err := patch(ann, `{"spec":{"approvedBy":"ann"}}`); err != nil {
		t.Fatal(err)
	}
	f.AwaitPhase(e, v1alpha1.ElevationActive)
	f.AssertRefused("the approval is taken over", patch(f.Impersonate("bob", "leads"), `{"spec":{"approvedBy":"bob"}}`), "approvedBy cannot be changed")
	f.AwaitEvent(e, "ElevationActive", "approved by ann (INC-42: the queue is stuck)")

	token, err := elevation.Open(key, e.Status.Token)
	if err != nil {
		t.Fatal(err)
	}
	end := time.Unix(int64(f.decodeClaims(token)["exp"].(float64)), 0).Add(elevation.Leeway)
	if !end.Equal(e.Status.Until.Time) || end.After(e.Status.Granted.Add(20*time.Minute+2*time.Second)) {
		t.Errorf("granted at %s until %s, and the token expires at %s", e.Status.Granted, e.Status.Until, end)
	}
	elevated := f.newTokenClient(token)
	f.Await("the elevated rights", func() string {
		for _, ns := range shop.Spec.Namespaces {
			if err := elevated.List(t.Context(), &corev1.SecretList{}, client.InNamespace(ns)); err != nil {
				return err.Error()
			}
		}
		return ""
	})
	if err := elevated.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "repaired"}}); err != nil {
		t.Error(err)
	}
	f.AssertRefused("secrets of another tenant", elevated.List(t.Context(), &corev1.SecretList{}, client.InNamespace("bank")), "cannot list")
	f.AssertRefused("a lasting binding", elevated.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "for-ever"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "shop-devs"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "croft-viewer"},
	}), "cannot create")
	standard := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "default"}}
	f.AssertRefused("a lasting token", elevated.SubResource("token").Create(t.Context(), standard, &authenticationv1.TokenRequest{}), "cannot create")
	account := elevation.Account(elevation.Name("shop", "eve-1"))
	for who, c := range map[string]client.Client{"eve": eve, "ann": ann, "the elevated": elevated} {
		f.AssertRefused(who+" takes another token", c.SubResource("token").Create(t.Context(), account.DeepCopy(), &authenticationv1.TokenRequest{}), "cannot create")
	}
	f.AssertRefused("the elevated asks for another elevation", elevated.Create(t.Context(), request(func(e *v1alpha1.Elevation) { e.Name = "again" })), "cannot create")

	// This access ends while no operator runs.
	f.Patch(shop, `{"spec":{"access":[{"group":"shop-devs","role":"viewer"},{"group":"night","role":"viewer","until":"`+
		time.Now().Add(10*time.Second).UTC().Format(time.RFC3339)+`"}]}}`)
	f.awaitSubject("night", true)
	(*stop)()

	// After the end, with croft stopped, reads and writes are refused although the account
	// and its bindings still exist.
	if err := f.newTokenClient(f.signWithExpiry(token, time.Now().Add(time.Minute))).List(t.Context(), &corev1.SecretList{}, client.InNamespace("shop")); err != nil {
		t.Errorf("before its end: %v", err)
	}
	over := f.newTokenClient(f.signWithExpiry(token, time.Now().Add(-elevation.Leeway-time.Second)))
	if err := over.List(t.Context(), &corev1.SecretList{}, client.InNamespace("shop")); !apierrors.IsUnauthorized(err) {
		t.Errorf("after its end the API server answers a read: %v", err)
	}
	if err := over.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "late"}}); !apierrors.IsUnauthorized(err) {
		t.Errorf("after its end the API server answers a write: %v", err)
	}
	if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(account), account); err != nil {
		t.Errorf("the service account does not stand: %v", err)
	}
	if n := f.CountBindings("shop"); n < 2 {
		t.Errorf("%d RoleBindings in shop: that of the elevation does not stand", n)
	}

	// An operator that restarts removes an expired elevation, even if the API server would
	// still accept the account's token.
	f.MoveEnd(e, time.Minute)
	*stop = f.Operate()
	f.AwaitPhase(e, v1alpha1.ElevationEnded)
	f.AwaitDeletion(account)
	f.awaitSubject("night", false)
	if e.Status.Token != nil || e.Spec.ApprovedBy != "ann" || e.Status.Granted == nil {
		t.Errorf("the record is %+v %+v", e.Spec, e.Status)
	}
	if err := elevated.List(t.Context(), &corev1.SecretList{}, client.InNamespace("shop")); err == nil {
		t.Error("the token is accepted without its account")
	}
	f.AwaitDeletion(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-db", Name: "croft-elevation-" + account.Name}})

	// The record is deleted 30 days after the end.
	f.MoveEnd(e, 29*24*time.Hour)
	f.AwaitPhase(e, v1alpha1.ElevationEnded)
	f.MoveEnd(e, 31*24*time.Hour)
	f.AwaitDeletion(e)
}
