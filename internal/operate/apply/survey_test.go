package apply_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall"
)

const surveyed = `
platform: {clusterName: demo, nodeClass: {kwok: {}}}
pools: {apps: {instances: {instanceTypes: [t3a.large]}}}
tenants: {shop: {pool: apps, access: [{group: shop, role: operator}], quota: {pods: "10"}, limits: {default: {cpu: "1"}}}}
`

// TestSurvey fails if Survey does not report exactly the changes that Apply would make.
func TestSurvey(t *testing.T) {
	sandbox.EndToEnd(t)
	cluster := sandbox.Start(t, sandbox.Options{Components: sandbox.APIOnly})
	c, err := client.New(cluster.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := install.Install(t.Context(), c, install.Options{}); err != nil {
		t.Fatal(err)
	}
	d, problems := manifest.Parse("croft.yaml", []byte(surveyed))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	e, problems := estate.Build(d)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	applier, objects := apply.New(c), wall.Objects(e)
	for _, by := range []struct {
		name    string
		options apply.SurveyOptions
		write   func(client.Object) error
	}{
		{"croft", apply.SurveyOptions{}, func(o client.Object) error {
			_, err := applier.Apply(t.Context(), o)
			return err
		}},
		{"kubectl", apply.SurveyOptions{Rendered: true}, func(o client.Object) error {
			o, _ = o.DeepCopyObject().(client.Object)
			//nolint:staticcheck // the objects have Go types and no apply configurations.
			return c.Patch(t.Context(), o, client.Apply, client.FieldOwner("kubectl"), client.ForceOwnership)
		}},
	} {
		t.Run("by "+by.name, func(t *testing.T) {
			survey := func(want ...apply.Surveyed) {
				t.Helper()
				got, err := applier.Survey(t.Context(), by.options, objects...)
				if err != nil {
					t.Fatal(err)
				}
				got = slices.DeleteFunc(got, func(s apply.Surveyed) bool { return s.State == apply.Matches })
				if !slices.EqualFunc(got, want, func(a, b apply.Surveyed) bool {
					return a.String() == b.String() && a.State == b.State && slices.Equal(a.ChangedBy, b.ChangedBy)
				}) {
					t.Errorf("not standing: %v, want %v", got, want)
				}
			}
			if got, err := applier.Survey(t.Context(), by.options, objects...); err != nil || slices.ContainsFunc(got, func(s apply.Surveyed) bool { return s.State != apply.Missing && s.Kind != "Namespace" }) {
				t.Fatalf("before anything is written: %v, %v", got, err)
			}
			for _, o := range objects {
				if err := by.write(o); err != nil {
					t.Fatal(err)
				}
			}
			survey()

			// An added rule opens a policy although all desired fields are in place.
			var policies networkingv1.NetworkPolicyList
			if err := c.List(t.Context(), &policies, client.InNamespace("shop")); err != nil {
				t.Fatal(err)
			}
			opened := &policies.Items[0]
			opened.Spec.Ingress = append(opened.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{})
			requireNoError(t, c.Update(t.Context(), opened, client.FieldOwner("kubectl-edit")))
			opened.TypeMeta = metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"}
			survey(apply.Surveyed{Ref: apply.RefOf(opened), State: apply.Differs, ChangedBy: []string{"kubectl-edit"}})

			for _, o := range objects {
				if o.GetName() == opened.Name {
					requireNoError(t, c.Delete(t.Context(), opened))
					requireNoError(t, by.write(o))
				}
			}
			survey()

			// Another quota by the same manager differs from the file: a single namespace
			// has no shares that move.
			i := slices.IndexFunc(objects, func(o client.Object) bool { return o.GetObjectKind().GroupVersionKind().Kind == "ResourceQuota" })
			quota, _ := objects[i].DeepCopyObject().(*corev1.ResourceQuota)
			quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1000")}
			requireNoError(t, by.write(quota))
			survey(apply.Surveyed{Ref: apply.RefOf(quota), State: apply.Differs})
			if !by.options.Rendered {
				// A retained namespace that left the tenant still has a share.
				kept, _ := objects[i].DeepCopyObject().(*corev1.ResourceQuota)
				kept.Namespace = "kept"
				requireNoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: kept.Namespace}}))
				requireNoError(t, by.write(kept))
				survey()
				requireNoError(t, c.Delete(t.Context(), kept))
			}
			requireNoError(t, by.write(objects[i]))
			survey()

			// Other managers may set labels, but not remove croft's own label.
			pool := &karpenterv1.NodePool{}
			requireNoError(t, c.Get(t.Context(), client.ObjectKey{Name: "apps"}, pool))
			pool.Labels["example.org/note"] = "seen"
			requireNoError(t, c.Update(t.Context(), pool, client.FieldOwner("tool")))
			survey()
			delete(pool.Labels, v1alpha1.ManagedByLabel)
			requireNoError(t, c.Update(t.Context(), pool, client.FieldOwner("tool")))
			pool.TypeMeta = metav1.TypeMeta{APIVersion: "karpenter.sh/v1", Kind: "NodePool"}
			got, err := applier.Survey(t.Context(), by.options, objects...)
			requireNoError(t, err)
			if !slices.ContainsFunc(got, func(s apply.Surveyed) bool { return s.Ref == apply.RefOf(pool) && s.State == apply.Differs }) {
				t.Errorf("a NodePool without croft's mark is not reported as different: %v", got)
			}

			// Delete all objects before the next case.
			for _, o := range slices.Backward(objects) {
				if o.GetObjectKind().GroupVersionKind().Kind == "Namespace" {
					continue // no controller would complete the deletion
				}
				requireNoError(t, c.Delete(t.Context(), o))
			}
		})
	}

	t.Run("objects that may not be read", func(t *testing.T) {
		as := rest.CopyConfig(cluster.Config)
		as.Impersonate = rest.ImpersonationConfig{UserName: "jane"}
		jane, err := client.New(as, client.Options{Scheme: scheme.New()})
		if err != nil {
			t.Fatal(err)
		}
		requireNoError(t, c.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "quotas"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"resourcequotas"}, Verbs: []string{"get", "list"}}}}))
		requireNoError(t, c.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "quotas"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "jane"}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "quotas"}}))
		got, err := apply.New(jane).Survey(t.Context(), apply.SurveyOptions{}, objects...)
		requireNoError(t, err)
		for _, s := range got {
			want := apply.Unreadable
			if s.Kind == "ResourceQuota" {
				want = apply.Missing
			}
			if s.State != want {
				t.Errorf("%s: %s, want %s", s, s.State, want)
			}
		}
	})
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
