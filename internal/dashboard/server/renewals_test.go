package server

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"croft.dev/croft/internal/dashboard/provider"
)

// TestRenewalsExpire expects a renewal to be shared until half of the lifetime of its token, and a failure
// for ten seconds.
func TestRenewalsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all renewals
		count := 0
		renew := func(lifetime time.Duration, err error) {
			_, _ = all.do(t.Context(), "refresh", func(context.Context) (*provider.Tokens, error) {
				count++
				return &provider.Tokens{Expiry: time.Now().Add(lifetime)}, err
			})
		}
		for _, step := range []struct {
			wait, lifetime time.Duration
			err            error
			count          int
		}{
			{0, time.Hour, nil, 1}, {59 * time.Second, time.Hour, nil, 1}, {2 * time.Second, 30 * time.Second, nil, 2}, {14 * time.Second, time.Hour, nil, 2},
			{2 * time.Second, 0, provider.ErrEnded, 3}, {9 * time.Second, time.Hour, nil, 3}, {2 * time.Second, time.Hour, nil, 4},
		} {
			time.Sleep(step.wait)
			if renew(step.lifetime, step.err); count != step.count {
				t.Errorf("%+v: %d renewals", step, count)
			}
		}
		time.Sleep(keepRenewed)
	})
}
