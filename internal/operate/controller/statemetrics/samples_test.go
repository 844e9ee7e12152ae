package statemetrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/walls/wall/network"
)

// formatSamples returns samples in Prometheus' text format, sorted.
func formatSamples(t *testing.T, s *state) []string {
	t.Helper()
	var all []string
	for _, m := range s.collectSamples() {
		var sample dto.Metric
		if err := m.Write(&sample); err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(m.Desc().String(), `fqName: "`)
		name, _, _ = strings.Cut(name, `"`)
		var labels []string
		for _, l := range sample.GetLabel() {
			labels = append(labels, l.GetName()+"="+l.GetValue())
		}
		all = append(all, fmt.Sprintf("%s{%s} %v", name, strings.Join(labels, ","), sample.GetGauge().GetValue()))
	}
	slices.Sort(all)
	return all
}

func newQuota(namespace, tenant, name string, hard, used corev1.ResourceList) corev1.ResourceQuota {
	return corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.TenantLabel: tenant}},
		Status:     corev1.ResourceQuotaStatus{Hard: hard, Used: used},
	}
}

func TestSamples(t *testing.T) {
	cpu := func(q string) corev1.ResourceList {
		return corev1.ResourceList{"requests.cpu": resource.MustParse(q), "count/secrets": resource.MustParse("0")}
	}
	condition := func(kind string, status metav1.ConditionStatus, reason string) v1alpha1.Status {
		return v1alpha1.Status{Conditions: []metav1.Condition{{Type: kind, Status: status, Reason: reason}}}
	}
	policy := func(name string, generation, observed int64, warnings int) admissionv1.ValidatingAdmissionPolicy {
		p := admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{
			Name: name, Generation: generation, Labels: map[string]string{v1alpha1.WallLabel: "policy"},
		}}
		p.Status.ObservedGeneration = observed
		// CEL has no type for limits, so every cluster has this warning.
		p.Status.TypeChecking = &admissionv1.TypeChecking{ExpressionWarnings: append(make([]admissionv1.ExpressionWarning, warnings),
			admissionv1.ExpressionWarning{Warning: "undefined field 'limits'"})}
		return p
	}
	s := &state{
		platforms: v1alpha1.PlatformList{Items: []v1alpha1.Platform{{
			ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.PlatformName},
			Status: v1alpha1.PlatformStatus{
				Status: condition("Ready", metav1.ConditionFalse, "ApplyFailed"),
				Verify: &v1alpha1.VerifyStatus{Time: metav1.NewTime(time.Unix(1000, 0)), Held: 9, Breached: 1},
			},
		}}},
		pools: v1alpha1.PoolList{Items: []v1alpha1.Pool{{
			ObjectMeta: metav1.ObjectMeta{Name: "apps"}, Status: v1alpha1.PoolStatus{Status: condition("NodesReady", metav1.ConditionUnknown, "Pending")},
		}}},
		tenants: v1alpha1.TenantList{Items: []v1alpha1.Tenant{{
			ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Status: v1alpha1.TenantStatus{
				Status: condition("Ready", metav1.ConditionTrue, "Ready"), RefusedPods: &v1alpha1.RefusedPods{Workloads: 3},
				Budget: &v1alpha1.TenantBudgetStatus{Spent: "812.40", Percent: 101},
			},
		}, {ObjectMeta: metav1.ObjectMeta{Name: "bank"}, Status: v1alpha1.TenantStatus{Budget: &v1alpha1.TenantBudgetStatus{}}}}},
		quotas: corev1.ResourceQuotaList{Items: []corev1.ResourceQuota{
			newQuota("shop-prod", "shop", "croft", cpu("3"), cpu("1500m")), newQuota("shop-dev", "shop", "croft", cpu("1"), cpu("500m")),
			newQuota("shop-dev", "shop", "mine", cpu("1"), cpu("1")), newQuota("bank", "", "croft", cpu("1"), cpu("1")),
		}},
		policies: admissionv1.ValidatingAdmissionPolicyList{Items: []admissionv1.ValidatingAdmissionPolicy{
			policy("croft-a", 2, 2, 3), policy("croft-b", 2, 1, 3),
		}},
		connections: []network.OpenConnection{
			{Caller: "bank", Callee: "shop", End: time.Unix(3000, 0)}, {Caller: "bank", Callee: "shop"},
			{Caller: "bank", Callee: "shop", End: time.Unix(2000, 0)}, {Caller: "shop", Callee: "bank"},
		},
	}
	want := []string{
		`croft_connection_end_timestamp_seconds{caller=bank,tenant=shop} 2000`,
		`croft_platform_status_condition{condition=Ready,reason=ApplyFailed,status=False} 1`,
		`croft_policy_info{policy=croft-a,wall=policy} 1`,
		`croft_policy_info{policy=croft-b,wall=policy} 1`,
		`croft_policy_type_warnings{policy=croft-a} 3`,
		`croft_pool_status_condition{condition=NodesReady,pool=apps,reason=Pending,status=Unknown} 1`,
		`croft_tenant_budget_spent_ratio{tenant=shop} 1.01`,
		`croft_tenant_quota_used_ratio{resource=requests.cpu,tenant=shop} 0.5`,
		`croft_tenant_refused_workloads{tenant=shop} 3`,
		`croft_tenant_status_condition{condition=Ready,reason=Ready,status=True,tenant=shop} 1`,
		`croft_verify_results{result=blocked_elsewhere} 0`,
		`croft_verify_results{result=breached} 1`,
		`croft_verify_results{result=held} 9`,
		`croft_verify_results{result=not_tried} 0`,
		`croft_verify_timestamp_seconds{} 1000`,
	}
	if got := formatSamples(t, s); !slices.Equal(got, want) {
		t.Errorf("\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := formatSamples(t, &state{}); len(got) > 0 {
		t.Errorf("of nothing: %v", got)
	}
}
