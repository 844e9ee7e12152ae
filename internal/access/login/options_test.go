package login

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zalando/go-keyring"
)

// TestOptions runs in `make test`. It expects a BadInputError that names the flag for each
// invalid option.
func TestOptions(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	good := Options{Issuer: "https://login.example.org", ClientID: "croft"}
	for message, change := range map[string]func(*Options){
		"":                            func(*Options) {},
		"--issuer is not set":         func(o *Options) { o.Issuer = "" },
		"--issuer http://login":       func(o *Options) { o.Issuer = "http://login.example.org" },
		"--issuer \x00":               func(o *Options) { o.Issuer = "\x00" },
		"a query or fragment":         func(o *Options) { o.Issuer += "?a=b" },
		"--client-id":                 func(o *Options) { o.ClientID = "" },
		"must be one of auto":         func(o *Options) { o.Storage = "safe" },
		"the host must be":            func(o *Options) { o.RedirectURL = "http://192.0.2.1/callback" },
		"--redirect-url ftp":          func(o *Options) { o.RedirectURL = "ftp://127.0.0.1" },
		"no PEM certificate":          func(o *Options) { o.CertificateAuthority = empty },
		"issuer-certificate-authorit": func(o *Options) { o.CertificateAuthority = empty + ".no" },
	} {
		o := good
		change(&o)
		_, err := New(o)
		var wrong *BadInputError
		if message == "" && err != nil || message != "" && (!errors.As(err, &wrong) || !strings.Contains(err.Error(), message)) {
			t.Errorf("want %q, got %v", message, err)
		}
	}
}

// TestKeyring runs in `make test`. It replaces the system's keyring by a mock.
func TestKeyring(t *testing.T) {
	s := newStore(&Options{Dir: t.TempDir(), Issuer: "https://login.example.org", ClientID: "croft"}, nil)
	k := &storedLogin{IDToken: "id", RefreshToken: "swordfish", Expiry: time.Now()}
	expectStored := func(inKeyring bool) {
		t.Helper()
		if err := s.save(k); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(s.path())
		if err != nil || strings.Contains(string(content), "swordfish") == inKeyring {
			t.Errorf("the file has %s, %v", content, err)
		}
		loaded, err := s.load()
		if err != nil {
			t.Fatal(err)
		}
		if token, err := s.loadRefreshToken(loaded); token != "swordfish" || err != nil {
			t.Errorf("the refresh token is %q, %v", token, err)
		}
	}
	keyring.MockInit()
	expectStored(true)
	if err := s.delete(); err != nil {
		t.Fatal(err)
	}
	if token, err := keyring.Get(keyringService, s.key); !errors.Is(err, keyring.ErrNotFound) {
		t.Errorf("after delete the keyring has %q, %v", token, err)
	}
	// Without a keyring, or if the token is too large for it, the token is stored in the
	// file.
	for _, err := range []error{errors.New("no keyring"), keyring.ErrSetDataTooBig} {
		keyring.MockInitWithError(err)
		expectStored(false)
	}
	s.storage = Keyring
	if err := s.save(k); err == nil || !strings.Contains(err.Error(), "--token-storage file") {
		t.Errorf("got %v", err)
	}
	// A damaged file counts as no login.
	if err := os.WriteFile(s.path(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if loaded, err := s.load(); err != nil || loaded.IDToken != "" {
		t.Errorf("got %v, %v", loaded, err)
	}
}
