package estate

import "testing"

func TestArchitectureOf(t *testing.T) {
	for instanceType, want := range map[string]string{
		"t3a.large": "amd64", "m5.24xlarge": "amd64", "c6i.metal": "amd64", "m7i-flex.large": "amd64",
		"g4dn.xlarge": "amd64", "g6.xlarge": "amd64", "gr6.4xlarge": "amd64", "x2iedn.32xlarge": "amd64",
		"hpc6a.48xlarge": "amd64", "inf2.xlarge": "amd64", "r7iz.metal-16xl": "amd64",
		"a1.medium": "arm64", "t4g.nano": "arm64", "m6g.large": "arm64", "c7gn.16xlarge": "arm64",
		"im4gn.large": "arm64", "is4gen.medium": "arm64", "x2gd.metal": "arm64", "g5g.xlarge": "arm64",
		"hpc7g.16xlarge": "arm64", "r8g.metal-24xl": "arm64",
		"mac2.metal": "", "u-12tb1.112xlarge": "", "p6e-gb200.36xlarge": "",
		"Standard_D2s_v3": "", "n2-standard-4": "", "c-4x-amd64-linux": "", "": "", "m6g": "", "m6g.huge": "",
	} {
		if got := ParseArchitecture(instanceType); got != want {
			t.Errorf("%s is %q, want %q", instanceType, got, want)
		}
	}
}
