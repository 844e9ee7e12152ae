package session

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"sync/atomic"
)

// keySize is the size of a key in bytes, for AES-256.
const keySize = 32

// purpose is authenticated with every sealed text, so that a text with one purpose cannot be opened
// with another.
type purpose string

const (
	forSession   purpose = "croft dashboard session v1"
	forAttempt   purpose = "croft dashboard login v1"
	forElevation purpose = "croft dashboard elevation v1"
)

// Keys seal and open cookies with AES-256-GCM. The first key seals, and every key opens.
type Keys struct{ keys atomic.Pointer[[]cipher.AEAD] }

// ParseKeys parses one or two keys: one line each, 32 bytes in base64. To rotate them, append the
// new key, which then opens sessions at every replica, make it the first line later, and delete the
// old key after a session's lifetime.
func ParseKeys(file []byte) (*Keys, error) {
	var keys []cipher.AEAD
	for i, line := range bytes.Split(file, []byte("\n")) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		// The error of the decoder would quote the key.
		key, err := base64.StdEncoding.DecodeString(string(line))
		if err != nil || len(key) != keySize {
			return nil, fmt.Errorf("line %d is not a key of 32 bytes in base64: generate one with `openssl rand -base64 32`", i+1)
		}
		keys = append(keys, newAEAD(key))
	}
	if len(keys) < 1 || len(keys) > 2 {
		return nil, errors.New("the file must have one or two lines, with a key each: generate one with `openssl rand -base64 32`")
	}
	return wrapKeys(keys...), nil
}

func wrapKeys(keys ...cipher.AEAD) *Keys {
	k := &Keys{}
	k.keys.Store(&keys)
	return k
}

// Replace replaces the keys by others.
func (k *Keys) Replace(others *Keys) { k.keys.Store(others.keys.Load()) }

// NewKeys returns a random key. Its sessions end with the process.
func NewKeys() *Keys {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never returns an error
	return wrapKeys(newAEAD(key))
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

func (k *Keys) seal(text []byte, p purpose) []byte {
	return (*k.keys.Load())[0].Seal(nil, nil, text, []byte(p))
}

func (k *Keys) open(sealed []byte, p purpose) (text []byte, ok bool) {
	for _, key := range *k.keys.Load() {
		if text, err := key.Open(nil, nil, sealed, []byte(p)); err == nil {
			return text, true
		}
	}
	return nil, false
}
