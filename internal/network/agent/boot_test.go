package agent

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/network/boot"
)

// registered is the time at which the kubelet in the sample journal registered its node.
var registered = time.Date(2025, 1, 9, 19, 58, 34, 0, time.UTC)

// makeJournalDirectory returns a directory like journald's, with a readable and an unreadable
// journal.
func makeJournalDirectory(t *testing.T) string {
	t.Helper()
	packed, err := os.Open("../journal/testdata/compact.journal.gz")
	requireNoError(t, err)
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	requireNoError(t, err)
	content, err := io.ReadAll(unpacked)
	requireNoError(t, err)
	directory := t.TempDir()
	machine := filepath.Join(directory, "fedcba9876543210fedcba9876543210")
	requireNoError(t, os.Mkdir(machine, 0o700))
	requireNoError(t, os.WriteFile(filepath.Join(machine, "system@1-2-3.journal"), content, 0o600))
	requireNoError(t, os.WriteFile(filepath.Join(machine, "system.journal~"), []byte("broken"), 0o600))
	requireNoError(t, os.WriteFile(filepath.Join(machine, "user-1000.journal"), []byte("a user's"), 0o600))
	return directory
}

func TestJournal(t *testing.T) {
	directory := makeJournalDirectory(t)
	times, err := Journal(directory)(registered)
	if len(times) != 19 || !times[boot.KubeletRegistered].Truncate(time.Second).Equal(registered) {
		t.Errorf("%d events: %v", len(times), times)
	}
	if err == nil || joinLines(err) == "" {
		t.Error("a broken file is no error")
	}
	for name, of := range map[string]struct {
		directory string
		created   time.Time
	}{
		"another time": {directory, registered.Add(24 * time.Hour)}, "an empty directory": {t.TempDir(), registered},
		"no directory": {filepath.Join(directory, "none"), registered},
	} {
		if times, _ := Journal(of.directory)(of.created); len(times) > 0 {
			t.Errorf("%s: %v", name, times)
		}
	}
	if _, err := Journal(t.TempDir())(registered); err == nil {
		t.Error("no file is no error")
	}
}

// patches records the writes to the status of Nodes, and refuses some of them.
type patches struct {
	client.Client
	refuse int
	all    []string
}

func (p *patches) Status() client.SubResourceWriter { return patchWriter{p.Client.Status(), p} }

type patchWriter struct {
	client.SubResourceWriter
	to *patches
}

func (w patchWriter) Patch(
	_ context.Context, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption,
) error {
	if w.to.refuse > 0 {
		w.to.refuse--
		return errors.New("refused")
	}
	data, err := p.Data(o)
	if err == nil && o.GetAnnotations()[v1alpha1.BootAnnotation] == "" {
		w.to.all = append(w.to.all, string(data))
	}
	return err
}

// TestTellBoot expects one write when the node is Ready, and none if the annotation exists.
func TestTellBoot(t *testing.T) {
	for name, c := range map[string]struct {
		change       func(*corev1.Node, *Agent, *patches)
		done, writes int
		reads        int
	}{
		"a ready node":          {func(*corev1.Node, *Agent, *patches) {}, 3, 1, 1},
		"the first write fails": {func(_ *corev1.Node, _ *Agent, p *patches) { p.refuse = 1 }, 2, 1, 1},
		"a node that is not Ready": {func(n *corev1.Node, _ *Agent, _ *patches) {
			n.Status.Conditions[0].Status = corev1.ConditionFalse
		}, 3, 0, 0},
		"it was reported before": {func(n *corev1.Node, _ *Agent, _ *patches) {
			n.Annotations = map[string]string{v1alpha1.BootAnnotation: "{}"}
		}, 3, 0, 0},
		"a journal that may not be read": {func(_ *corev1.Node, a *Agent, _ *patches) { a.Boot = nil }, 3, 0, 0},
		"an empty journal": {func(n *corev1.Node, _ *Agent, _ *patches) {
			n.CreationTimestamp = metav1.NewTime(registered.Add(24 * time.Hour))
		}, 3, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue}
			node := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "a", CreationTimestamp: metav1.NewTime(registered)},
				Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{ready}},
			}
			p := &patches{Client: fake.NewClientBuilder().WithScheme(scheme.New()).Build()}
			reads := 0
			read := Journal(makeJournalDirectory(t))
			a := &Agent{Node: "a", Writer: p, Log: slog.New(slog.DiscardHandler)}
			a.Boot = func(created time.Time) (boot.Times, error) {
				reads++
				return read(created)
			}
			c.change(node, a, p)
			done := 0
			for range 3 {
				if a.reportBoot(t.Context(), node) {
					done++
				}
			}
			if done != c.done || len(p.all) != c.writes || reads != c.reads {
				t.Errorf("done %d times, %d writes, %d reads", done, len(p.all), reads)
			}
			for _, data := range p.all {
				var patch struct {
					Metadata struct{ Annotations map[string]string }
				}
				requireNoError(t, json.Unmarshal([]byte(data), &patch))
				times, err := boot.Decode(patch.Metadata.Annotations[v1alpha1.BootAnnotation])
				if err != nil || len(times) != 19 || len(patch.Metadata.Annotations) != 1 {
					t.Errorf("written: %s: %v", data, err)
				}
			}
		})
	}
}
