package doctor_test

import (
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/version"
	"croft.dev/croft/internal/diagnose/doctor"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/heartbeat"
	"croft.dev/croft/internal/walls/wall"
)

const served = `
platform: {clusterName: demo, nodeClass: {kwok: {}}, network: {platformNamespaces: [ingress]}}
pools: {apps: {instances: {instanceTypes: [t3a.large]}}}
tenants: {shop: {pool: apps, access: [{group: shop, role: operator}, {group: contractors, role: operator, until: "2026-01-01T00:00:00Z"}]}}
`

// testWalls fails if doctor misses a missing object of a wall, trusts the conditions of an
// operator that does not run, or misses a platform namespace that does not exist.
func (k *doctorCluster) testWalls(t *testing.T) {
	declaration, problems := manifest.Parse("croft.yaml", []byte(served))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	declaration.Now = time.Now() // the contractors' access has ended by now
	e, problems := estate.Build(declaration)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	stand := func(t *testing.T) {
		t.Helper()
		if _, err := apply.New(k).Apply(t.Context(), wall.Objects(e)...); err != nil {
			t.Fatal(err)
		}
		k.awaitNoFinding(t, "walls")
	}

	k.awaitFinding(t, "walls", doctor.Problem, "Platform: ", "is missing")
	k.awaitFinding(t, "walls", doctor.Problem, "Tenant/shop: ", "TenantRules shop/croft is missing")
	stand(t)

	t.Run("a changed policy", func(t *testing.T) {
		floor := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "croft-network-floor"}}
		ignore := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"failurePolicy": "Ignore"}}`))
		if err := k.Patch(t.Context(), floor, ignore, client.FieldOwner("somebody")); err != nil {
			t.Fatal(err)
		}
		k.awaitFinding(t, "walls", doctor.Problem, "Platform: ValidatingAdmissionPolicy croft-network-floor was changed by somebody")
		stand(t)
	})
	t.Run("an added rule", func(t *testing.T) {
		policy := &networkingv1.NetworkPolicy{}
		if err := k.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "croft-isolation"}, policy); err != nil {
			t.Fatal(err)
		}
		policy.Spec.Ingress = append(policy.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{})
		if err := k.Update(t.Context(), policy, client.FieldOwner("somebody")); err != nil {
			t.Fatal(err)
		}
		k.awaitFinding(t, "walls", doctor.Problem, "Tenant/shop: NetworkPolicy shop/croft-isolation was changed by somebody")
		stand(t)
	})
	t.Run("a deleted binding", func(t *testing.T) {
		binding := &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "croft-pods"}}
		if err := k.Delete(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
		k.awaitFinding(t, "walls", doctor.Problem, "Platform: MutatingAdmissionPolicyBinding croft-pods is missing")
	})

	t.Run("platform namespaces", func(t *testing.T) {
		k.awaitFinding(t, "platform", doctor.Warning, "platformNamespaces names ingress, which does not exist")
		k.createObjects(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ingress"}})
		k.awaitResult(t, "platform", func(r doctor.Result) bool {
			for _, f := range r.Findings {
				if strings.Contains(f.Message, "platformNamespaces") {
					return false
				}
			}
			return true
		})
	})

	t.Run("operator", func(t *testing.T) {
		k.awaitFinding(t, "operator", doctor.Problem, "no operator has run yet")
		k.awaitFinding(t, "platform", doctor.Warning, "Ready is not reliable")
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: heartbeat.Name, Annotations: map[string]string{heartbeat.VersionAnnotation: "v0.0.1"}},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("croft-0"), RenewTime: ptr.To(metav1.NewMicroTime(time.Now().Add(time.Hour)))},
		}
		k.createObjects(t, lease)
		k.awaitFinding(t, "operator", doctor.Warning, "its version is v0.0.1")
		lease.Annotations[heartbeat.VersionAnnotation] = version.String()
		if err := k.Update(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
		k.awaitNoFinding(t, "operator")
		if summary := k.runCheck(t, "operator").Summary; !strings.HasPrefix(summary, "the operator is alive, ") {
			t.Errorf("the summary is %q", summary)
		}
		lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now().Add(-12 * time.Minute)))
		if err := k.Update(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
		k.awaitFinding(t, "operator", doctor.Problem, "no operator for 12 min")
	})

	t.Run("of a file", func(t *testing.T) {
		seen, err := doctor.Gather(t.Context(), k, k.version, doctor.Options{File: declaration})
		if err != nil {
			t.Fatal(err)
		}
		results := doctor.Check(seen)
		if r := findResult(t, results, "operator"); len(r.Findings) > 0 || !strings.Contains(r.Summary, "without croft's operator") {
			t.Errorf("operator: %+v", r)
		}
		if r := findResult(t, results, "platform"); len(r.Findings) > 0 {
			t.Errorf("platform: %+v", r)
		}
		r := findResult(t, results, "walls")
		if len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Fix, "croft render") {
			t.Errorf("walls: %+v", r)
		}
	})
}
