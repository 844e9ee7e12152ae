package doctor_test

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/diagnose/doctor"
)

// testLoad sends requests that do not end, of one tenant's service account. A few of them occupy its small priority
// level, so that the others wait. The test fails if doctor does not name the tenant.
func (k *doctorCluster) testLoad(t *testing.T) {
	k.awaitNoFinding(t, "load")
	level := &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "narrow"},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: ptr.To[int32](1), LendablePercent: ptr.To[int32](0), BorrowingLimitPercent: ptr.To[int32](0),
				LimitResponse: flowcontrolv1.LimitResponse{ // with one queue, the API server would list no flows
					Type: flowcontrolv1.LimitResponseTypeQueue, Queuing: &flowcontrolv1.QueuingConfiguration{Queues: 2, HandSize: 1, QueueLengthLimit: 200},
				},
			},
		},
	}
	schema := &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: "narrow"},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: level.Name}, MatchingPrecedence: 500,
			DistinguisherMethod: &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: "system:serviceaccounts:shop"}}},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
					Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, Namespaces: []string{"*"}, ClusterScope: true,
				}},
			}},
		},
	}
	// The API server reads the body of a request only if the user has the right to it.
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "narrow"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "shop", Name: "ci"}},
	}
	k.createObjects(t, level, schema, binding)
	as := rest.CopyConfig(k.box.Config)
	as.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:shop:ci", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"},
	}
	account, err := rest.HTTPClientFor(as)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var clients sync.WaitGroup
	for range 40 {
		clients.Go(func() {
			for ctx.Err() == nil {
				sendEndlessBody(ctx, account, k.box.Config.Host+"/api/v1/namespaces/shop/configmaps")
			}
		})
	}
	start := time.Now()
	k.awaitFinding(t, "load", doctor.Warning, "Tenant/shop", "requests in progress in the API server are of its namespaces")
	t.Logf("doctor names the tenant after %s", time.Since(start).Round(time.Second))
	stop()
	clients.Wait()
	k.awaitNoFinding(t, "load")
	for _, o := range []client.Object{binding, schema, level} {
		if err := k.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// sendEndlessBody sends a request whose body does not end before ctx, or before the API server refuses to wait longer.
func sendEndlessBody(ctx context.Context, c *http.Client, url string) {
	body, end := io.Pipe()
	defer func() { _ = end.Close() }()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return
	}
	r.Header.Set("Content-Type", "application/json")
	if response, err := c.Do(r); err == nil {
		_ = response.Body.Close()
	}
}
