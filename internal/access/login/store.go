package login

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/zalando/go-keyring"

	"croft.dev/croft/internal/declare/atomicfile"
)

const (
	// keyringService is the service name of croft's secrets in the keyring.
	keyringService = "croft"
	// lockInterval is how often a waiting process retries the lock.
	lockInterval = 20 * time.Millisecond
)

// storedLogin is the stored state of a login.
type storedLogin struct {
	Issuer   string `json:"issuer"`
	ClientID string `json:"clientID"`
	// Subject, User and Groups are claims of the ID token.
	Subject string   `json:"subject,omitempty"`
	User    string   `json:"user,omitempty"`
	Groups  []string `json:"groups,omitempty"`
	// IDToken is valid for minutes or hours only, so it is always stored in a file.
	IDToken string    `json:"idToken,omitempty"`
	Expiry  time.Time `json:"expiry"`
	// RefreshToken is empty if it is stored in the keyring or if there is none.
	RefreshToken string `json:"refreshToken,omitempty"`
	// InKeyring is true if the refresh token is stored in the keyring.
	InKeyring bool `json:"inKeyring,omitempty"`
}

// store is the storage of one login, identified by provider, client, scopes and account.
type store struct {
	dir, key string
	storage  Storage
}

func newStore(o *Options, scopes []string) *store {
	parts := append([]string{o.Issuer, o.ClientID}, scopes...)
	if o.Account != "" {
		parts = append(parts, "", o.Account) // no scope is empty
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	storage := o.Storage
	if storage == "" {
		storage = Auto
	}
	return &store{dir: o.Dir, key: hex.EncodeToString(sum[:16]), storage: storage}
}

func (s *store) path() string { return filepath.Join(s.dir, s.key+".json") }

// lock excludes other processes until unlock is called, because a refresh token may be used
// only once.
func (s *store) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(s.dir, s.key+".lock"), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockInterval); err != nil {
		return nil, fmt.Errorf("waiting for another croft process: %w", err)
	}
	return func() { _ = lock.Unlock() }, nil
}

// load reads the stored login, without a refresh token in the keyring. A missing or damaged
// file counts as no login; the next login replaces it.
func (s *store) load() (*storedLogin, error) {
	content, err := os.ReadFile(s.path())
	if errors.Is(err, fs.ErrNotExist) {
		return &storedLogin{}, nil
	}
	if err != nil {
		return nil, err
	}
	k := &storedLogin{}
	if json.Unmarshal(content, k) != nil {
		k = &storedLogin{}
	}
	return k, nil
}

// loadRefreshToken returns the refresh token of a login; empty if there is none.
func (s *store) loadRefreshToken(k *storedLogin) (string, error) {
	if !k.InKeyring {
		return k.RefreshToken, nil
	}
	token, err := keyring.Get(keyringService, s.key)
	if errors.Is(err, keyring.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the refresh token from the keyring: %w", err)
	}
	return token, nil
}

// save stores a login. The refresh token goes to the keyring if there is one.
func (s *store) save(k *storedLogin) error {
	previous, err := s.load()
	if err != nil {
		return err
	}
	if k.RefreshToken != "" && s.storage != File {
		err := keyring.Set(keyringService, s.key, k.RefreshToken)
		switch {
		case err == nil:
			inKeyring := *k
			inKeyring.RefreshToken, inKeyring.InKeyring = "", true
			k = &inKeyring
		case s.storage == Keyring:
			return fmt.Errorf("storing the refresh token in the keyring: %w: use --token-storage file if there is no keyring", err)
		}
	}
	if previous.InKeyring && !k.InKeyring {
		_ = keyring.Delete(keyringService, s.key) // best effort: the old refresh token is of little use
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	content, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return atomicfile.Write(s.path(), content, 0o600)
}

// delete removes the stored login.
func (s *store) delete() error {
	k, err := s.load()
	if err != nil {
		return err
	}
	if k.InKeyring {
		if err := keyring.Delete(keyringService, s.key); err != nil && !errors.Is(err, keyring.ErrNotFound) {
			return fmt.Errorf("deleting the refresh token from the keyring: %w", err)
		}
	}
	if err := os.Remove(s.path()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
