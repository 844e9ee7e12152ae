package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"croft.dev/croft/sandbox/internal/home"
)

// EnsureSigningKey creates the key pair name.key and name.pub in dir, unless it exists. With
// it, the API server signs and verifies service account tokens.
func EnsureSigningKey(dir, name string) error {
	public := filepath.Join(dir, name+".pub")
	if _, err := os.Stat(public); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := home.Write(filepath.Join(dir, name+".key"), keyPEM); err != nil {
		return err
	}
	return home.Write(public, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}
