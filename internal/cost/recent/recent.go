// Package recent copies the last hours of a ledger to ConfigMaps, and restores them if the volume of the ledger is
// lost.
//
// Each hour of two days has ConfigMaps with fixed names, which the hour two days later replaces. Therefore their number
// and their size have a bound, and nothing deletes them. The first ConfigMap of an hour is written last. A reader finds
// an hour by it, and compares the content with the checksums of the ledger's file.
package recent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/cost/store"
	"croft.dev/croft/internal/declare/rights"
)

const (
	// hourAnnotation is the beginning of the hour of a ConfigMap, and partsAnnotation the number of its ConfigMaps.
	hourAnnotation  = "croft.dev/hour"
	partsAnnotation = "croft.dev/parts"
	// dataKey is the key of the compressed content in a ConfigMap.
	dataKey = "hour.gz"
	// mostBytes limits the content of a ConfigMap. Kubernetes allows 1 MiB.
	mostBytes = 960 << 10
	// mostAge is the age of the oldest hours that are restored: the ledger keeps hours for 35 days.
	mostAge = 35 * 24 * time.Hour
	// interval is the time between two searches for hours without a copy.
	interval = 10 * time.Second
	// fieldOwner owns the fields of the ConfigMaps.
	fieldOwner = "croft-ledger"
)

// Labels are the labels of the ConfigMaps. They have no label of croft's installation, whose objects `croft uninstall`
// deletes.
var Labels = map[string]string{"app.kubernetes.io/name": "croft-ledger", "app.kubernetes.io/component": "recent-hours"}

// errUnusable means that the ConfigMaps of an hour do not have the whole hour.
var errUnusable = errors.New("its ConfigMaps are unusable")

// Result is the result of an attempt to copy an hour.
type Result string

// The results of attempts to copy an hour.
const (
	Written  Result = "written"
	TooLarge Result = "too_large"
	Failed   Result = "failed"
)

// Options configure a Copier.
type Options struct {
	Store *store.Store
	// Client has no cache, which would need the right to list all ConfigMaps.
	Client client.Client
	Clock  clock.PassiveClock
	Log    *slog.Logger
	// OnCopied is called after each attempt to copy an hour.
	OnCopied func(Result)
}

// Copier copies the hours of a store that this process leads. Its methods must not be concurrent.
type Copier struct {
	Options
	// done are the hours that need no attempt.
	done map[time.Time]bool
	// mostBytes limits the content of a ConfigMap.
	mostBytes int
}

// New returns a Copier.
func New(o Options) *Copier {
	return &Copier{Options: o, done: map[time.Time]bool{}, mostBytes: mostBytes}
}

// Restore writes the hours that the store lacks and the ConfigMaps have. Unusable ConfigMaps are skipped. Any other
// error is returned: without these hours the ledger would estimate them, and never read their copies again.
func (c *Copier) Restore(ctx context.Context) error {
	heads := map[time.Time]head{}
	for slot := range rights.CopiedHours {
		h, err := c.readHead(ctx, rights.NameCopy(time.Unix(0, 0).Add(time.Duration(slot)*time.Hour), 1))
		if apierrors.IsForbidden(err) {
			c.Log.WarnContext(ctx, "lost hours cannot be restored: run croft install or helm upgrade, which give the right to read ConfigMaps",
				"error", err)
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the copies of hours: %w", err)
		}
		if !h.hour.IsZero() {
			heads[h.hour] = h
			c.done[h.hour] = true
		}
	}
	lost, err := c.Store.FindLost(slices.Collect(maps.Keys(heads)))
	if err != nil {
		return err
	}
	for _, hour := range lost {
		copied, err := c.readHour(ctx, heads[hour])
		if errors.Is(err, errUnusable) {
			c.Log.WarnContext(ctx, "a lost hour is not restored", "hour", hour, "error", err)
			delete(c.done, hour)
			continue
		}
		if err != nil {
			return fmt.Errorf("read the copy of the hour of %s: %w", hour.Format(time.RFC3339), err)
		}
		if err := c.Store.Restore(copied); err != nil {
			return err
		}
		c.Log.InfoContext(ctx, "restored a lost hour", "hour", hour)
	}
	return nil
}

// Run copies hours until the context ends or another process leads. getStored returns the end of the stored hours, or an
// error while there is none. A failed copy is tried again.
func (c *Copier) Run(ctx context.Context, getStored func() (time.Time, error)) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	failing := false
	for {
		if stored, err := getStored(); err == nil {
			err = c.Copy(ctx, stored)
			if errors.Is(err, store.ErrFenced) {
				return err
			}
			if err != nil && !failing && ctx.Err() == nil {
				c.Log.WarnContext(ctx, "an hour is not copied to ConfigMaps: it is tried again, and failures are not logged again before it succeeds",
					"error", err)
			}
			failing = err != nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Copy copies the last stored hours that have no copy. stored is their end. It returns store.ErrFenced if another process
// leads.
func (c *Copier) Copy(ctx context.Context, stored time.Time) error {
	first := stored.UTC().Add(-rights.CopiedHours * time.Hour)
	maps.DeleteFunc(c.done, func(hour time.Time, _ bool) bool { return hour.Before(first) })
	for hour := first; hour.Before(stored); hour = hour.Add(time.Hour) {
		if c.done[hour] {
			continue
		}
		if err := c.copyHour(ctx, hour); err != nil {
			if !errors.Is(err, store.ErrFenced) {
				c.OnCopied(Failed)
			}
			return fmt.Errorf("copy the hour of %s: %w", hour.Format(time.RFC3339), err)
		}
		c.done[hour] = true
	}
	return nil
}

func (c *Copier) copyHour(ctx context.Context, hour time.Time) error {
	copied, found, err := c.Store.CopyHour(hour)
	if err != nil || !found {
		return err
	}
	packed, err := pack(copied.Data)
	if err != nil {
		return err
	}
	parts := slices.Collect(slices.Chunk(packed, c.mostBytes))
	if len(parts) > rights.CopyParts {
		c.Log.WarnContext(ctx, "an hour is too large for ConfigMaps, and only on the volume", "hour", hour, "bytes", len(packed),
			"most", rights.CopyParts*c.mostBytes)
		c.OnCopied(TooLarge)
		return nil
	}
	present, err := c.readHead(ctx, rights.NameCopy(hour, 1))
	if err != nil {
		return err
	}
	if present.hour.After(hour) {
		return nil // a later leader wrote it
	}
	for i, part := range slices.Backward(parts) {
		o := coreapply.ConfigMap(rights.NameCopy(hour, i+1), v1alpha1.SystemNamespace).WithLabels(Labels).
			WithAnnotations(map[string]string{hourAnnotation: hour.Format(time.RFC3339), partsAnnotation: strconv.Itoa(len(parts))}).
			WithBinaryData(map[string][]byte{dataKey: part})
		if i == 0 && present.version != "" {
			// Another leader may have written it meanwhile.
			o.WithResourceVersion(present.version)
		}
		if err := c.Client.Apply(ctx, o, client.FieldOwner(fieldOwner), client.ForceOwnership); err != nil {
			return err
		}
	}
	c.OnCopied(Written)
	return nil
}

// head is the state of the first ConfigMap of an hour.
type head struct {
	// hour is zero if the ConfigMap does not exist or names no valid hour.
	hour  time.Time
	parts int
	// version is the version of the ConfigMap, or empty if it does not exist.
	version string
}

// readHead reads the first ConfigMap of an hour without its content.
func (c *Copier) readHead(ctx context.Context, name string) (head, error) {
	var o metav1.PartialObjectMetadata
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: v1alpha1.SystemNamespace, Name: name}, &o)
	if err != nil {
		return head{}, client.IgnoreNotFound(err)
	}
	h := head{version: o.ResourceVersion}
	hour, parts, err := parseAnnotations(o.Annotations)
	now := c.Clock.Now()
	switch {
	case err != nil:
	case rights.NameCopy(hour, 1) != name:
		err = fmt.Errorf("the annotation %s is an hour of another ConfigMap: %s", hourAnnotation, hour.Format(time.RFC3339))
	case hour.Add(time.Hour).After(now) || hour.Before(now.Add(-mostAge)):
		err = fmt.Errorf("the annotation %s is not an hour of the last 35 days: %s", hourAnnotation, hour.Format(time.RFC3339))
	default:
		h.hour, h.parts = hour, parts
	}
	if err != nil {
		c.Log.WarnContext(ctx, "a ConfigMap with an hour is ignored", "configMap", name, "error", err)
	}
	return h, nil
}

// parseAnnotations returns the hour of a ConfigMap, and its number of ConfigMaps.
func parseAnnotations(annotations map[string]string) (hour time.Time, parts int, err error) {
	if hour, err = time.Parse(time.RFC3339, annotations[hourAnnotation]); err != nil {
		return hour, 0, fmt.Errorf("the annotation %s: %w", hourAnnotation, err)
	}
	if hour = hour.UTC(); !hour.Equal(hour.Truncate(time.Hour)) {
		return hour, 0, fmt.Errorf("the annotation %s is not the beginning of an hour: %s", hourAnnotation, hour.Format(time.RFC3339))
	}
	parts, err = strconv.Atoi(annotations[partsAnnotation])
	if err != nil || parts < 1 || parts > rights.CopyParts {
		return hour, 0, fmt.Errorf("the annotation %s is not a number from 1 to %d: %q", partsAnnotation, rights.CopyParts,
			annotations[partsAnnotation])
	}
	return hour, parts, nil
}

// readHour reads all ConfigMaps of an hour.
func (c *Copier) readHour(ctx context.Context, h head) (store.Copy, error) {
	var packed []byte
	for part := range h.parts {
		var o corev1.ConfigMap
		name := rights.NameCopy(h.hour, part+1)
		err := c.Client.Get(ctx, client.ObjectKey{Namespace: v1alpha1.SystemNamespace, Name: name}, &o)
		switch {
		case apierrors.IsNotFound(err):
			return store.Copy{}, fmt.Errorf("%w: %s does not exist", errUnusable, name)
		case err != nil:
			return store.Copy{}, err
		case o.Annotations[hourAnnotation] != h.hour.Format(time.RFC3339):
			return store.Copy{}, fmt.Errorf("%w: %s has the hour %q", errUnusable, name, o.Annotations[hourAnnotation])
		}
		packed = append(packed, o.BinaryData[dataKey]...)
	}
	data, err := unpack(packed)
	if err != nil {
		return store.Copy{}, fmt.Errorf("%w: %w", errUnusable, err)
	}
	copied, err := store.ParseCopy(data)
	if err != nil {
		return store.Copy{}, fmt.Errorf("%w: %w", errUnusable, err)
	}
	if !copied.From.Equal(h.hour) {
		return store.Copy{}, fmt.Errorf("%w: the content is the hour of %s", errUnusable, copied.From.Format(time.RFC3339))
	}
	return copied, nil
}
