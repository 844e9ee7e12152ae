package session

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
)

// keySize is the size of a key in bytes, for AES-256.
const keySize = 32

// purpose is authenticated with every session, so that the keys' other uses, if there are any,
// produce no sessions.
const purpose = "croft dashboard session v1"

// Keys seal and open sessions with AES-256-GCM. The first key seals, and every key opens.
type Keys struct{ keys []cipher.AEAD }

// ParseKeys parses one or two keys: one line each, 32 bytes in base64. To rotate them, insert a new
// first line, and delete the last line after a session's lifetime.
func ParseKeys(file []byte) (*Keys, error) {
	k := &Keys{}
	for i, line := range bytes.Split(file, []byte("\n")) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		// The error of the decoder would quote the key.
		key, err := base64.StdEncoding.DecodeString(string(line))
		if err != nil || len(key) != keySize {
			return nil, fmt.Errorf("line %d is no key of 32 bytes in base64: generate one with `openssl rand -base64 32`", i+1)
		}
		k.keys = append(k.keys, newAEAD(key))
	}
	if len(k.keys) < 1 || len(k.keys) > 2 {
		return nil, errors.New("the file must have one or two lines, with a key each: generate one with `openssl rand -base64 32`")
	}
	return k, nil
}

// NewKeys returns a random key. Its sessions end with the process.
func NewKeys() *Keys {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never returns an error
	return &Keys{keys: []cipher.AEAD{newAEAD(key)}}
}

// newAEAD returns AES-GCM with a random nonce in each sealed text. The key has a valid size, so
// there are no errors.
func newAEAD(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return aead
}

func (k *Keys) seal(text []byte) []byte {
	return k.keys[0].Seal(nil, nil, text, []byte(purpose))
}

func (k *Keys) open(sealed []byte) (text []byte, ok bool) {
	for _, key := range k.keys {
		if text, err := key.Open(nil, nil, sealed, []byte(purpose)); err == nil {
			return text, true
		}
	}
	return nil, false
}
