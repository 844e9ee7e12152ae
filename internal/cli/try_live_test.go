package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/prove/trial"
)

// live needs objects of the cluster that a dry run does not create: the service account of
// the pods and the Role of the RoleBinding.
const live = stranger + `---
apiVersion: v1
kind: ServiceAccount
metadata: {name: fresh}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: fresh}
spec:
  selector: {matchLabels: {app: fresh}}
  template:
    metadata: {labels: {app: fresh}}
    spec:
      serviceAccountName: fresh
      containers: [{name: web, image: nginx, resources: {requests: {cpu: 1000m}, limits: {cpu: "1"}}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "nginx:1"}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: fresh}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: fresh}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: fresh}
subjects: [{kind: ServiceAccount, name: fresh}]
---
apiVersion: example.org/v1
kind: Nothing
metadata: {name: nothing}
`

// testTryLive runs croft try --live as a tenant's member and as an administrator who
// impersonates one. Both get the same answer, and no object is stored.
func (p *people) testTryLive(t *testing.T) {
	p.awaitCondition(t, "the quota is counted", func(ctx context.Context) error {
		var quotas corev1.ResourceQuotaList
		if err := p.admin.List(ctx, &quotas, client.InNamespace("shop-prod")); err != nil {
			return err
		}
		if len(quotas.Items) == 0 || len(quotas.Items[0].Status.Hard) == 0 {
			return fmt.Errorf("not yet: %v", quotas.Items)
		}
		return nil
	})
	type want struct {
		object, of string
		verdict    trial.Verdict
		by, rule   string
		line       int
	}
	wants := []want{
		{"Service/out", "", trial.Refused, "croft-services", "service-type", 4},
		{"ServiceAccount/fresh", "", trial.Admitted, "", "", 0},
		{"Deployment/fresh", "", trial.Admitted, "", "", 0},
		{"Pod", "Deployment/fresh", trial.Changed, "", "", 0},
		{"Deployment/web", "", trial.Admitted, "", "", 0},
		{"Pod", "Deployment/web", trial.Changed, "", "", 0},
		{"Role/fresh", "", trial.Admitted, "", "", 0},
		{"RoleBinding/fresh", "", trial.Warned, "API server", "", 38},
		{"Nothing/nothing", "", trial.Refused, "API server", "", 41},
	}
	for name, args := range map[string][]string{
		"a member":         {"-n", "shop-prod", "--kubeconfig", p.writeKubeconfig("oidc:devs", "")},
		"by context":       {"--kubeconfig", p.writeKubeconfig("oidc:devs", "shop-prod")},
		"an administrator": {"--tenant", "shop", "--kubeconfig", p.Kubeconfig},
	} {
		t.Run(name, func(t *testing.T) {
			status, stdout, stderr := runCroft(t, live, append([]string{"try", "--live", "-o", "json", "-"}, args...)...)
			var got trial.Report
			if err := json.Unmarshal([]byte(stdout), &got); err != nil || status != 1 || len(got.Results) != len(wants) {
				t.Fatalf("exit status %d, %v: %s%s", status, err, stdout, stderr)
			}
			for i, w := range wants {
				r := got.Results[i]
				is := want{r.Object, r.CreatedFrom, r.Verdict, "", "", 0}
				for _, reason := range append(r.Refusals, r.Warnings...) {
					is.by, is.rule, is.line = reason.Source, reason.Rule, reason.Line
				}
				if is != w {
					t.Errorf("result %d is %+v, want %+v: %+v", i, is, w, r)
				}
			}
			for _, c := range got.Results[3].Changes {
				if !strings.HasPrefix(c.Path, "spec.nodeSelector") && !strings.HasPrefix(c.Path, "spec.tolerations") {
					t.Errorf("the pod is changed in %+v", c)
				}
			}
			if unknown := strings.Join(got.Unknown, "\n"); strings.Count(unknown, "shop-prod/fresh") != 1 || !strings.Contains(unknown, "quota") {
				t.Errorf("the unknown facts are:\n%s", unknown)
			}
		})
	}
	for message, args := range map[string][]string{
		"you may not read the declared objects":          {"--tenant", "shop", "--kubeconfig", p.writeKubeconfig("oidc:devs", "")},
		"cannot impersonate resource":                    {"--as-service-account", "ci", "-n", "shop-prod", "--kubeconfig", p.writeKubeconfig("oidc:devs", "")},
		`"system:serviceaccount:shop-prod:ci" cannot`:    {"--as-service-account", "ci", "-n", "shop-prod", "--kubeconfig", p.Kubeconfig},
		"namespace vault does not belong to tenant shop": {"--tenant", "shop", "-n", "vault", "--kubeconfig", p.Kubeconfig},
		"there is no such tenant":                        {"--tenant", "shup", "--kubeconfig", p.Kubeconfig},
	} {
		status, stdout, stderr := runCroft(t, stranger, append([]string{"try", "--live", "-"}, args...)...)
		want := 1
		if strings.HasPrefix(message, "namespace") || strings.HasPrefix(message, "there") {
			want = 2
		}
		if status != want || !strings.Contains(stdout+stderr, message) {
			t.Errorf("%v: exit status %d, want %d and %q:\n%s%s", args, status, want, message, stdout, stderr)
		}
	}
	var account corev1.ServiceAccount
	if err := p.admin.Get(t.Context(), client.ObjectKey{Namespace: "shop-prod", Name: "fresh"}, &account); !apierrors.IsNotFound(err) {
		t.Errorf("a dry run has left something: %v", err)
	}
}
