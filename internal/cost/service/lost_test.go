package service_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/recent"
	"croft.dev/croft/internal/cost/store"
	"croft.dev/croft/internal/declare/rights"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/test/sandbox"
)

// openStore opens a directory as its leader.
func openStore(t *testing.T, directory string) *store.Store {
	t.Helper()
	s, err := store.Open(directory, func(file string, err error) { t.Errorf("%s: %v", file, err) })
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Lead(store.Leader{Identity: "test", Lease: "test"}); err != nil {
		t.Fatal(err)
	}
	return s
}

// writeHours stores hours until a time.
func writeHours(t *testing.T, directory string, hours int, until time.Time) {
	t.Helper()
	s := openStore(t, directory)
	for n := range hours {
		from := until.Add(time.Duration(n-hours) * time.Hour)
		r := store.Record{Span: ledger.Span{From: from, Until: from.Add(time.Hour)}, Currency: "USD", Nodes: money.Amount(n)}
		for i := range 3 {
			r.Rows = append(r.Rows, ledger.Row{Cost: money.Amount(n * i), Key: ledger.Key{Kind: ledger.Tenant, Resource: ledger.NodeResource,
				Tenant: fmt.Sprint("team-", i), Namespace: fmt.Sprint("team-", i), Workload: fmt.Sprintf("Job/%d-%d", n, i)}})
		}
		if err := s.WriteHour(r); err != nil {
			t.Fatal(err)
		}
	}
}

// readFiles returns the files of hours until a time, by the hours before it. An hour that is not stored has none.
func readFiles(t *testing.T, directory string, hours int, until time.Time) map[int][]byte {
	t.Helper()
	s, files := openStore(t, directory), map[int][]byte{}
	for n := 1; n <= hours; n++ {
		c, found, err := s.CopyHour(until.Add(-time.Duration(n) * time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if found {
			files[n] = c.Data
		}
	}
	return files
}

// TestLostVolume runs the service with the hours of two days and more, and loses its volume. The next process has the last
// 48 hours, with the same content.
func TestLostVolume(t *testing.T) {
	sandbox.EndToEnd(t)
	f := operatortest.Start(t, sandbox.APIOnly)
	createInstalledRights(f)
	const hours = rights.CopiedHours + 2
	directory, end := t.TempDir(), time.Now().UTC().Truncate(time.Hour)
	writeHours(t, directory, hours, end)
	_, stop := runService(f, directory)
	f.Await("the copies", func() string {
		var list corev1.ConfigMapList
		if err := f.Client.List(t.Context(), &list, client.InNamespace(v1alpha1.SystemNamespace), client.MatchingLabels(recent.Labels)); err != nil {
			return err.Error()
		}
		if n := len(list.Items); n != rights.CopiedHours {
			return fmt.Sprintf("%d of %d", n, rights.CopiedHours)
		}
		return ""
	})
	stop()
	want := readFiles(t, directory, hours, end)
	if len(want) != hours {
		t.Fatalf("%d hours are stored, want %d", len(want), hours)
	}

	other := t.TempDir()
	_, stop = runService(f, other)
	f.Await("the restored hours", func() string {
		s, err := store.Open(other, func(string, error) {})
		if err != nil {
			return err.Error()
		}
		if last, err := s.FindLast(); err != nil || last.Before(end) {
			return fmt.Sprint(last, err)
		}
		// A process that has read all objects writes its journal. Earlier, it would end with an error.
		if journals, err := filepath.Glob(filepath.Join(other, "journal", "*")); err != nil || len(journals) == 0 {
			return fmt.Sprint("no journal ", err)
		}
		return ""
	})
	stop()
	got := readFiles(t, other, hours, end)
	for n := 1; n <= hours; n++ {
		if n > rights.CopiedHours {
			want[n] = nil
		}
		if !bytes.Equal(got[n], want[n]) {
			t.Errorf("the hour %d before the end has %d bytes, want the same %d bytes", n, len(got[n]), len(want[n]))
		}
	}
}
