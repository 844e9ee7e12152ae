package elevation

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// TestOpenNeedsPrivateKey expects a token to be readable only with its request's private key.
func TestOpenNeedsPrivateKey(t *testing.T) {
	private, public, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := Seal(public, "secret")
	if err != nil {
		t.Fatal(err)
	}
	if token, err := Open(private, sealed); err != nil || token != "secret" {
		t.Errorf("%q, %v", token, err)
	}
	other, _, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	if token, err := Open(other, sealed); err == nil {
		t.Errorf("another key reads %q", token)
	}
	for _, bad := range []string{"", "x", strings.Repeat("A", 43) + "="} {
		if _, err := Seal(bad, "secret"); err == nil {
			t.Errorf("sealed for the key %q", bad)
		}
	}
}

// TestNames expects valid Kubernetes names, and different names for different namespaces.
func TestNames(t *testing.T) {
	long := Name(strings.Repeat("n", 63), strings.Repeat("e", 40))
	if why := validation.IsValidLabelValue(long); len(why) > 0 {
		t.Error(why)
	}
	if why := validation.IsDNS1123Subdomain(long); len(why) > 0 {
		t.Error(why)
	}
	if Name("shop", "a") == Name("bank", "a") {
		t.Error("two namespaces share a name")
	}
}
