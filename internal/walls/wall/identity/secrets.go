package identity

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/rights"
)

// buildSecretBindings returns a RoleBinding for each copy of a Secret, in each namespace. The RoleBinding
// is the only declaration of the copy that `croft copy-secrets` reads, gives it the right to write the
// copy, and owns the copy. So a copy that is no longer declared can no longer be written, and Kubernetes'
// garbage collector deletes it, even while neither the operator's nor the copier's process runs.
func buildSecretBindings(t *estate.Tenant) []client.Object {
	copier := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: v1alpha1.SystemNamespace, Name: rights.Copier}
	var all []client.Object
	for _, namespace := range t.Namespaces {
		for _, secret := range t.Secrets {
			all = append(all, &rbacv1.RoleBinding{
				TypeMeta: makeRBACMeta("RoleBinding"),
				ObjectMeta: metav1.ObjectMeta{
					Namespace: namespace, Name: rights.Copier + "-" + secret.Name,
					Labels:      map[string]string{v1alpha1.SecretLabel: secret.Name},
					Annotations: map[string]string{v1alpha1.SecretSourceAnnotation: secret.Source},
				},
				Subjects: []rbacv1.Subject{copier},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: rights.Copier},
			})
		}
	}
	return all
}
