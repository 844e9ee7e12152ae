package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/network/boot"
	"croft.dev/croft/internal/network/journal"
)

// BootReader finds the events of the boot in which a node registered. created is the
// creation time of the Node. If it returns an error, the events that it has found are valid
// nevertheless.
type BootReader func(created time.Time) (boot.Times, error)

// Journal reads the system's journal files in a directory of journald, such as
// /var/log/journal.
func Journal(directory string) BootReader {
	return func(created time.Time) (boot.Times, error) {
		// system.journal, and its predecessors system@….journal. Users' journals are in the
		// same directory.
		paths, err := filepath.Glob(filepath.Join(directory, "*", "system*.journal*"))
		errs := []error{err}
		if len(paths) == 0 {
			errs = append(errs, fmt.Errorf("%s: there is no journal file", directory))
		}
		var log boot.Log
		for _, path := range paths {
			if err := readJournal(path, created, &log); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", path, err))
			}
		}
		return log.Boot(created), errors.Join(errs...)
	}
}

func readJournal(path string, created time.Time, log *boot.Log) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return journal.Read(file, created.Add(-boot.Before), created.Add(boot.After), func(e journal.Entry) {
		log.Add(boot.Line{Time: e.Time, Source: e.Identifier, Text: e.Message})
	})
}

// reportBoot writes the times of the boot to the Node once, when the node is Ready, because
// no event of a boot comes later. It reports whether no retry is needed.
func (a *Agent) reportBoot(ctx context.Context, node *corev1.Node) bool {
	if a.Boot == nil || a.bootKnown || node.Annotations[v1alpha1.BootAnnotation] != "" || !isReady(node) {
		return true
	}
	if a.bootTimes == nil {
		var err error
		if a.bootTimes, err = a.Boot(node.CreationTimestamp.Time); err != nil {
			a.Log.Error("the journal cannot be read", "error", joinLines(err), "events", len(a.bootTimes))
		}
	}
	if len(a.bootTimes) == 0 {
		a.Log.Info("the journal has no entries about the boot")
		a.bootKnown = true
		return true
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{v1alpha1.BootAnnotation: boot.Encode(a.bootTimes)},
	}})
	if err == nil {
		err = a.Writer.Status().Patch(ctx, node, client.RawPatch(types.StrategicMergePatchType, data))
	}
	if err != nil {
		a.Log.Error("the times of the boot cannot be written", "error", err.Error())
		return false
	}
	a.Log.Info("boot", "events", len(a.bootTimes))
	a.bootKnown = true
	return true
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
