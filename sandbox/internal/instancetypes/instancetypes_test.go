package instancetypes

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	"sigs.k8s.io/karpenter/kwok/options"
)

func TestTable(t *testing.T) {
	types, err := ReadTable()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]Type{}
	for _, it := range types {
		if _, twice := byName[it.Name]; twice {
			t.Errorf("%s is listed twice", it.Name)
		}
		byName[it.Name] = it
		if it.Arch != "amd64" && it.Arch != "arm64" {
			t.Errorf("%s: nodes do not have the architecture %q", it.Name, it.Arch)
		}
		if it.Price <= 0 || it.CPU.Sign() <= 0 || it.Memory.Sign() <= 0 || it.Pods.Sign() <= 0 {
			t.Errorf("%s: %+v", it.Name, it)
		}
	}
	for name, arch := range map[string]string{
		"t3a.medium": "amd64", "t3a.large": "amd64", "t3a.xlarge": "amd64", "t3.xlarge": "amd64",
		"m5.large": "amd64", "m5.xlarge": "amd64", "m6i.large": "amd64", "c6i.2xlarge": "amd64", "r5.large": "amd64",
		"m6g.large": "arm64", "c7g.large": "arm64", "t4g.medium": "arm64",
	} {
		if byName[name].Arch != arch {
			t.Errorf("%s is %q, want %s", name, byName[name].Arch, arch)
		}
	}
	large := byName["t3a.large"]
	if large.CPU.String() != "2" || large.Memory.String() != "8Gi" {
		t.Errorf("a t3a.large has 2 CPUs and 8 GiB: got %s, %s", large.CPU.String(), large.Memory.String())
	}
}

// TestEncodeJSONForKwokProvider reads the output with the code of Karpenter's kwok provider.
func TestEncodeJSONForKwokProvider(t *testing.T) {
	zones := []string{"us-west-2a", "us-west-2b"}
	content, err := EncodeJSON(zones)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(content) {
		t.Fatal("not JSON")
	}
	file := filepath.Join(t.TempDir(), "types.json")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	types, err := kwok.ConstructInstanceTypes(options.ToContext(t.Context(), &options.Options{InstanceTypesFilePath: file}))
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range types {
		if it.Name != "m6g.2xlarge" {
			continue
		}
		if len(it.Offerings) != 2*len(zones) {
			t.Errorf("%d offerings, want each of two capacity types in each of %d zones", len(it.Offerings), len(zones))
		}
		for _, offering := range it.Offerings {
			for key, want := range map[string]string{
				"karpenter.k8s.aws/instance-category":   "m",
				"karpenter.k8s.aws/instance-generation": "6",
				"karpenter.k8s.aws/instance-family":     "m6g",
				"karpenter.k8s.aws/instance-size":       "2xlarge",
				"karpenter.k8s.aws/instance-cpu":        "8",
				"karpenter.k8s.aws/instance-memory":     "32768",
			} {
				if !offering.Requirements.Get(key).Has(want) {
					t.Errorf("%s is %v, want %s", key, offering.Requirements.Get(key).Values(), want)
				}
			}
		}
		if !it.Requirements.Get(corev1.LabelArchStable).Has("arm64") {
			t.Error("m6g is not arm64")
		}
		return
	}
	t.Error("there is no m6g.2xlarge")
}
