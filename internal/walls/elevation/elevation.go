// Package elevation defines the cluster's objects of an elevation, and encrypts its token
// for the requester. It does no I/O.
package elevation

import (
	"crypto/ecdh"
	"crypto/hpke"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/walls/wall/identity"
)

// Leeway is the time for which the API server still accepts a service account's token after
// its exp claim (go-jose's DefaultLeeway). Tokens are requested with a lifetime that is
// shorter by this time.
const Leeway = time.Minute

// Shortest and Longest limit the duration of an elevation. The Platform can have a lower maximum.
const (
	Shortest = 15 * time.Minute
	Longest  = 24 * time.Hour
)

var noName = regexp.MustCompile(`[^a-z0-9]+`)

// NewRequest returns a user's request for the role operator, with the public key that its token is encrypted
// for.
func NewRequest(namespace, user string, duration time.Duration, reason, public string) *v1alpha1.Elevation {
	return &v1alpha1.Elevation{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: deriveNamePrefix(user) + "-"},
		Spec: v1alpha1.ElevationSpec{
			RequestedBy: user, Role: v1alpha1.ElevationOperator, Duration: metav1.Duration{Duration: duration.Truncate(time.Second)},
			Reason: reason, PublicKey: public,
		},
	}
}

// deriveNamePrefix derives the beginning of an object's name from a user name.
func deriveNamePrefix(user string) string {
	name := strings.Trim(noName.ReplaceAllString(strings.ToLower(user), "-"), "-")
	if name == "" {
		return "elevation"
	}
	return strings.TrimRight(name[:min(len(name), 30)], "-")
}

// Name returns the name of the service account of an elevation, which is requested in one
// of the tenant's namespaces. It is the value of ElevationLabel, too.
func Name(namespace, name string) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(namespace))
	return fmt.Sprintf("%s.%08x", name, hash.Sum32())
}

// buildLabels mark an object as croft's. They do not mark it as part of a wall: walls are
// pruned.
func buildLabels(account string) map[string]string {
	return map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy, v1alpha1.ElevationLabel: account}
}

// Account returns the service account of an elevation.
func Account(account string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ElevationsNamespace, Name: account, Labels: buildLabels(account)},
	}
}

// Bindings returns the RoleBindings of a granted elevation, one in each of the tenant's
// namespaces.
func Bindings(e *v1alpha1.Elevation, namespaces []string) []client.Object {
	account := Name(e.Namespace, e.Name)
	all := make([]client.Object, len(namespaces))
	for i, namespace := range namespaces {
		all[i] = &rbacv1.RoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "croft-elevation-" + account, Labels: buildLabels(account),
				Annotations: map[string]string{
					v1alpha1.ElevationLabel:  e.Namespace + "/" + e.Name,
					v1alpha1.UntilAnnotation: account + "=" + e.Status.Until.UTC().Format(time.RFC3339),
				},
			},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: v1alpha1.ElevationsNamespace, Name: account}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: identity.ElevatedRole},
		}
	}
	return all
}

// info binds an encrypted token to its purpose.
var info = []byte("croft.dev/v1alpha1 elevation")

// NewKey returns a new private key, and the public key in the encoding of a request.
func NewKey() (private *ecdh.PrivateKey, public string, err error) {
	if private, err = ecdh.X25519().GenerateKey(rand.Reader); err != nil {
		return nil, "", err
	}
	return private, base64.StdEncoding.EncodeToString(private.PublicKey().Bytes()), nil
}

// Seal encrypts a token for the public key of a request.
func Seal(public, token string) ([]byte, error) {
	raw, err := base64.StdEncoding.DecodeString(public)
	if err != nil {
		return nil, err
	}
	point, err := ecdh.X25519().NewPublicKey(raw)
	if err != nil {
		return nil, err
	}
	key, err := hpke.NewDHKEMPublicKey(point)
	if err != nil {
		return nil, err
	}
	return hpke.Seal(key, hpke.HKDFSHA256(), hpke.AES128GCM(), info, []byte(token))
}

// Open decrypts a token.
func Open(private *ecdh.PrivateKey, sealed []byte) (string, error) {
	key, err := hpke.NewDHKEMPrivateKey(private)
	if err != nil {
		return "", err
	}
	token, err := hpke.Open(key, hpke.HKDFSHA256(), hpke.AES128GCM(), info, sealed)
	return string(token), err
}
