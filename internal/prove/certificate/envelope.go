package certificate

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
)

// payloadType is the media type of an in-toto statement in an envelope.
const payloadType = "application/vnd.in-toto+json"

// Envelope is a signed statement; see https://github.com/secure-systems-lab/dsse.
type Envelope struct {
	PayloadType string      `json:"payloadType"`
	Payload     string      `json:"payload"`
	Signatures  []Signature `json:"signatures"`
}

// Signature is one signature. KeyID is the SHA-256 of the public key in PKIX encoding.
type Signature struct {
	KeyID string `json:"keyid"`
	Sig   string `json:"sig"`
}

// ParseKey parses an Ed25519 private key in PKCS #8 from PEM, as `openssl genpkey -algorithm
// ed25519` writes it.
func ParseKey(text []byte) (ed25519.PrivateKey, error) {
	const want = "use a key from `openssl genpkey -algorithm ed25519`"
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, errors.New("not a PEM file with a PRIVATE KEY: " + want)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("not a key: %w: %s", err, want)
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("not an Ed25519 key (%T): %s", key, want)
	}
	return private, nil
}

// Sign returns an envelope with the statement and one signature.
func Sign(s *Statement, key ed25519.PrivateKey) (*Envelope, error) {
	payload, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	public, ok := key.Public().(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("%T has no public key", key)
	}
	id, err := computeKeyID(public)
	if err != nil {
		return nil, err
	}
	return &Envelope{
		PayloadType: payloadType, Payload: base64.StdEncoding.EncodeToString(payload),
		Signatures: []Signature{{KeyID: id, Sig: base64.StdEncoding.EncodeToString(ed25519.Sign(key, encodePayload(payload)))}},
	}, nil
}

// Open verifies an envelope with a public key, and returns its statement.
func Open(e *Envelope, key ed25519.PublicKey) (*Statement, error) {
	if e.PayloadType != payloadType {
		return nil, fmt.Errorf("an envelope of type %q, not of %s", e.PayloadType, payloadType)
	}
	payload, err := base64.StdEncoding.DecodeString(e.Payload)
	if err != nil {
		return nil, fmt.Errorf("the payload is not base64: %w", err)
	}
	for _, s := range e.Signatures {
		sig, err := base64.StdEncoding.DecodeString(s.Sig)
		if err == nil && ed25519.Verify(key, encodePayload(payload), sig) {
			statement := &Statement{}
			return statement, json.Unmarshal(payload, statement)
		}
	}
	return nil, errors.New("no signature matches this key")
}

// encodePayload returns the signed text: DSSE's encoding of the type and the payload.
func encodePayload(payload []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
}

func computeKeyID(key ed25519.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:]), nil
}
