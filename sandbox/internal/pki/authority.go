// Package pki issues the certificates of a sandbox. Each sandbox has CAs of its own, so
// that no other sandbox accepts its certificates.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"croft.dev/croft/sandbox/internal/home"
)

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	// All processes run on one machine and have the same clock, but the clock may be set back.
	backdate = time.Hour
)

// Authority signs certificates.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// CertFile and KeyFile are the paths of the CA's files.
	CertFile, KeyFile string
}

// LoadOrCreate reads the CA name from dir, or creates it.
func LoadOrCreate(dir, name string) (*Authority, error) {
	a := &Authority{CertFile: filepath.Join(dir, name+".crt"), KeyFile: filepath.Join(dir, name+".key")}
	certPEM, err := os.ReadFile(a.CertFile)
	if errors.Is(err, fs.ErrNotExist) {
		return a, a.createFiles(name)
	}
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(a.KeyFile)
	if err != nil {
		return nil, err
	}
	return a, a.parseFiles(certPEM, keyPEM)
}

// NewPool returns a pool with only this CA, for the verification of its certificates.
func (a *Authority) NewPool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// EncodePEM returns the CA's certificate.
func (a *Authority) EncodePEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

func (a *Authority) createFiles(name string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := drawSerial()
	if err != nil {
		return err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "croft-sandbox " + name},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	a.key = key
	keyPEM, err := encodeKey(key)
	if err != nil {
		return err
	}
	// The certificate is written last: its file shows that the CA is complete.
	if err := home.Write(a.KeyFile, keyPEM); err != nil {
		return err
	}
	return home.Write(a.CertFile, a.EncodePEM())
}

func (a *Authority) parseFiles(certPEM, keyPEM []byte) (err error) {
	block, _ := pem.Decode(certPEM)
	if block == nil {
		return fmt.Errorf("%s contains no certificate: delete the sandbox and start it again", a.CertFile)
	}
	if a.cert, err = x509.ParseCertificate(block.Bytes); err != nil {
		return fmt.Errorf("%s: %w", a.CertFile, err)
	}
	if block, _ = pem.Decode(keyPEM); block == nil {
		return fmt.Errorf("%s contains no key: delete the sandbox and start it again", a.KeyFile)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return fmt.Errorf("%s: %w", a.KeyFile, err)
	}
	ec, ok := key.(*ecdsa.PrivateKey)
	if !ok || !ec.PublicKey.Equal(a.cert.PublicKey) {
		return fmt.Errorf("%s is not the key of %s: delete the sandbox and start it again", a.KeyFile, a.CertFile)
	}
	a.key = ec
	return nil
}

// Leaf is a request for a certificate. It is for a client if User is set, and
// for a server if Hosts is set.
type Leaf struct {
	User   string
	Groups []string
	Hosts  []string
	// Life defaults to one year.
	Life time.Duration
}

// Pair is a certificate and its key.
type Pair struct {
	Cert, Key []byte // PEM
}

// Issue signs a certificate with a new key.
func (a *Authority) Issue(want Leaf) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	serial, err := drawSerial()
	if err != nil {
		return Pair{}, err
	}
	life := want.Life
	if life == 0 {
		life = 365 * 24 * time.Hour
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: want.User, Organization: want.Groups},
		NotBefore:    now.Add(-backdate),
		NotAfter:     now.Add(life),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
	if want.User != "" {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	for _, host := range want.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	if len(want.Hosts) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: keyPEM}, nil
}

// IssueTo signs a certificate and writes it to dir as name.crt and name.key.
func (a *Authority) IssueTo(dir, name string, want Leaf) error {
	pair, err := a.Issue(want)
	if err != nil {
		return fmt.Errorf("issue the certificate %s: %w", name, err)
	}
	if err := home.Write(filepath.Join(dir, name+".key"), pair.Key); err != nil {
		return err
	}
	return home.Write(filepath.Join(dir, name+".crt"), pair.Cert)
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func drawSerial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
}
