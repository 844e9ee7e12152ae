package elevation

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// TestTokenIsForOne wants a token to be readable by the key of its request alone.
func TestTokenIsForOne(t *testing.T) {
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

// TestNames wants names that Kubernetes takes, and no two namespaces to share one.
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
