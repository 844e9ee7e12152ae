package estate_test

import (
	"slices"
	"testing"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
)

func TestMetadata(t *testing.T) {
	for name, c := range map[string]struct{ named, want []string }{
		"of all clouds": {nil, []string{
			"169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254",
			"64:ff9b::a9fe:a9fe", "64:ff9b::a9fe:aa02", "64:ff9b::6464:64c8", "64:ff9b::a83f:8110", "64:ff9b::c000:c0",
		}},
		"of one cloud":       {[]string{"169.254.169.254"}, []string{"169.254.169.254", "64:ff9b::a9fe:a9fe"}},
		"of IPv6 alone":      {[]string{"FD00:EC2:0::254"}, []string{"fd00:ec2::254"}},
		"given twice":        {[]string{"10.0.0.1", "64:ff9b::10.0.0.1"}, []string{"10.0.0.1", "64:ff9b::a00:1"}},
		"what is no address": {[]string{"metadata", "10.0.0.1"}, []string{"10.0.0.1", "64:ff9b::a00:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, a := range estate.ListMetadataAddresses(&v1alpha1.PlatformNetwork{MetadataAddresses: c.named}) {
				got = append(got, a.String())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
