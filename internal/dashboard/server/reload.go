package server

import (
	"context"
	"log/slog"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"croft.dev/croft/internal/dashboard/session"
)

// reloadInterval is how often the file of the session keys is read. Secret volumes replace files by
// symbolic links, which not every file watcher notices.
const reloadInterval = 5 * time.Second

// ReloadKeys replaces keys by the keys in a file when the file changes, until ctx ends. content is
// the content with which keys were parsed.
func ReloadKeys(ctx context.Context, keys *session.Keys, file string, content []byte, log *slog.Logger) {
	f := keyFile{keys: keys, path: file, last: string(content), log: log}
	wait.UntilWithContext(ctx, f.reload, reloadInterval)
}

type keyFile struct {
	keys *session.Keys
	path string
	// last is the content or the error of the last reload, so that it is reported once.
	last string
	log  *slog.Logger
}

func (f *keyFile) reload(ctx context.Context) {
	content, err := os.ReadFile(f.path)
	current := string(content)
	if err != nil {
		current = err.Error()
	}
	if current == f.last {
		return
	}
	f.last = current
	var next *session.Keys
	if err == nil {
		next, err = session.ParseKeys(content)
	}
	if err != nil {
		f.log.ErrorContext(ctx, "cannot read the session keys: keeping the previous ones", "file", f.path, "error", err)
		return
	}
	f.keys.Replace(next)
	f.log.InfoContext(ctx, "loaded the session keys", "file", f.path)
}
