package server

import (
	"encoding/base64"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"croft.dev/croft/internal/dashboard/session"
)

// TestReload expects new keys after a change of the file, and the previous ones if the file is invalid
// or missing.
func TestReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	encodeKey := func(letter string) string {
		return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, 32))) + "\n"
	}
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log strings.Builder
	keys := session.NewKeys()
	f := keyFile{keys: keys, path: file, log: slog.New(slog.NewTextHandler(&log, nil))}
	opens := func(letter string) bool {
		sealer, err := session.ParseKeys([]byte(encodeKey(letter)))
		if err != nil {
			t.Fatal(err)
		}
		cookies, err := sealer.Seal(session.New("a", "ana", time.Now()), nil, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		_, err = keys.Open(cookies, time.Now())
		return err == nil
	}
	write(encodeKey("a"))
	f.reload(t.Context())
	write(encodeKey("a") + encodeKey("b"))
	f.reload(t.Context())
	if !opens("a") || !opens("b") {
		t.Error("the second key is not loaded")
	}
	for _, text := range []string{"", "secret"} {
		write(text)
		f.reload(t.Context())
		f.reload(t.Context())
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	f.reload(t.Context())
	f.reload(t.Context())
	if !opens("a") || !opens("b") {
		t.Error("an invalid file replaces the keys")
	}
	if n := strings.Count(log.String(), "keeping the previous ones"); n != 3 || strings.Contains(log.String(), "secret") {
		t.Errorf("%d messages, want 3:\n%s", n, log.String())
	}
	write(encodeKey("b"))
	f.reload(t.Context())
	if opens("a") || !opens("b") {
		t.Error("the old key is not removed")
	}
}
