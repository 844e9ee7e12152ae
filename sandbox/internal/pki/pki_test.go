package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestLoadOrCreateLoadsAuthority(t *testing.T) {
	dir := t.TempDir()
	first, err := LoadOrCreate(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	second, err := LoadOrCreate(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.EncodePEM(), second.EncodePEM()) {
		t.Error("a new authority was made although there was one")
	}
	pair, err := second.Issue(Leaf{User: "jane"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseLeaf(t, pair).Verify(x509.VerifyOptions{Roots: first.NewPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
}

func TestForeignKeyIsRefused(t *testing.T) {
	dir := t.TempDir()
	a, err := LoadOrCreate(dir, "a")
	if err != nil {
		t.Fatal(err)
	}
	b, err := LoadOrCreate(dir, "b")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(a.KeyFile, b.KeyFile); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadOrCreate(dir, "b"); err == nil {
		t.Error("an authority with the key of another was accepted")
	}
}

func TestIssueLimitsUsages(t *testing.T) {
	a, err := LoadOrCreate(t.TempDir(), "ca")
	if err != nil {
		t.Fatal(err)
	}
	client, server := x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth
	for name, tc := range map[string]struct {
		want   Leaf
		usages []x509.ExtKeyUsage
	}{
		"client": {Leaf{User: "jane", Groups: []string{"devs", "ops"}}, []x509.ExtKeyUsage{client}},
		"server": {Leaf{Hosts: []string{"127.0.0.1", "localhost"}}, []x509.ExtKeyUsage{server}},
		"peer":   {Leaf{User: "etcd", Hosts: []string{"127.0.0.1"}}, []x509.ExtKeyUsage{client, server}},
	} {
		t.Run(name, func(t *testing.T) {
			pair, err := a.Issue(tc.want)
			if err != nil {
				t.Fatal(err)
			}
			got := parseLeaf(t, pair)
			if got.IsCA || !slices.Equal(got.ExtKeyUsage, tc.usages) {
				t.Errorf("usages %v, authority %v; want %v", got.ExtKeyUsage, got.IsCA, tc.usages)
			}
			slices.Sort(got.Subject.Organization) // a set, in no order
			if got.Subject.CommonName != tc.want.User || !slices.Equal(got.Subject.Organization, tc.want.Groups) {
				t.Errorf("issued to %v", got.Subject)
			}
			for _, host := range tc.want.Hosts {
				if err := got.VerifyHostname(host); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestFilesAreReadableByOwnerOnly(t *testing.T) {
	dir := t.TempDir()
	a, err := LoadOrCreate(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.IssueTo(dir, "jane", Leaf{User: "jane"}); err != nil {
		t.Fatal(err)
	}
	if err := EnsureSigningKey(dir, "sa"); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 6 {
		t.Errorf("got %v, want a certificate and a key of each of the authority, jane and the signer", entries)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != 0o600 {
			t.Errorf("%s has mode %v", filepath.Join(dir, entry.Name()), info.Mode())
		}
	}
}

func parseLeaf(t *testing.T, pair Pair) *x509.Certificate {
	t.Helper()
	c, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	return c.Leaf
}
