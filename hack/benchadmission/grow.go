package main

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// writers is the number of tenants written concurrently, and probed the number of tenants
	// in which the placement of pods is checked.
	writers, probed = 16, 40
	// patience is the time limit for changes that should take effect at once. Gatekeeper may
	// take up to ingestPatience for thousands of objects.
	patience, ingestPatience = time.Minute, 10 * time.Minute
	progressEvery            = 10 * time.Second
)

// growAll grows the lines one after the other, and measures the memory in between.
func (c *comparison) growAll(ctx context.Context, size int, m *memory) error {
	for i, heap := range []*float64{&m.Before, &m.AfterNative, &m.AfterGatekeeper} {
		if err := c.growLines(ctx, size, c.lines[i]); err != nil {
			return err
		}
		var err error
		if *heap, err = c.readLiveHeap(ctx); err != nil {
			return err
		}
	}
	return nil
}

// growLines grows lines one after the other.
func (c *comparison) growLines(ctx context.Context, size int, lines ...*line) error {
	for _, l := range lines {
		if err := c.growLine(ctx, l, size); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	return nil
}

// growLine adds tenants to a line up to the given number, and waits until pods of the new tenants
// are placed as expected.
func (c *comparison) growLine(ctx context.Context, l *line, size int) error {
	objects, err := l.objects(size)
	if err != nil {
		return err
	}
	before, number := len(l.namespaces), 0
	if before == size {
		return nil
	}
	for _, tenant := range objects[before:] {
		l.namespaces = append(l.namespaces, findNamespace(tenant))
		number += len(tenant)
	}
	done, stop := c.reportProgress(l, number)
	defer stop()
	err = runInParallel(ctx, before, size, writers, func(ctx context.Context, i int) error {
		for _, o := range objects[i] {
			if err := c.writeObject(ctx, o); err != nil {
				return err
			}
			done.Add(1)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := c.awaitIngested(ctx, slices.Concat(objects...)); err != nil {
		return err
	}
	if err := c.awaitServiceAccounts(ctx, l); err != nil {
		return err
	}
	// This checks the last tenant and some of the earlier ones: if creating a pod is slow,
	// checking every tenant would take longer than all else.
	step := max((size-before)/probed, 1)
	return runInParallel(ctx, 0, min(probed, size-before), writers, func(ctx context.Context, n int) error {
		return c.awaitPods(ctx, l, size-1-n*step)
	})
}

// awaitServiceAccounts waits until each namespace has its default service account, without
// which no pod is admitted.
func (c *comparison) awaitServiceAccounts(ctx context.Context, l *line) error {
	missing := ""
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		accounts := &metav1.PartialObjectMetadataList{}
		accounts.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccountList"))
		if err := c.admin.List(ctx, accounts, client.MatchingFields{"metadata.name": "default"}); err != nil {
			return false, err
		}
		has := map[string]bool{}
		for _, account := range accounts.Items {
			has[account.Namespace] = true
		}
		missing = ""
		for _, namespace := range l.namespaces {
			if !has[namespace] {
				missing = namespace
			}
		}
		return missing == "", nil
	})
	if err != nil {
		return fmt.Errorf("namespace %s has no service account: %w", missing, err)
	}
	return nil
}

// reportProgress reports the number of written objects at intervals.
func (c *comparison) reportProgress(l *line, number int) (done *atomic.Int64, stop func()) {
	done = &atomic.Int64{}
	printProgress("%s: writing %d objects", l.name, number)
	ticker, ended := time.NewTicker(progressEvery), make(chan struct{})
	go func() {
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				if n := int(done.Load()); n < number {
					printProgress("%s: %d of %d objects written", l.name, n, number)
				} else {
					printProgress("%s: waiting for all of it to take effect", l.name)
				}
			}
		}
	}()
	return done, func() { ticker.Stop(); close(ended) }
}

// writeObject creates one object, and retries until it succeeds.
func (c *comparison) writeObject(ctx context.Context, o *unstructured.Unstructured) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = client.IgnoreAlreadyExists(c.admin.Create(ctx, o.DeepCopy()))
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("write %s %s/%s: %w: %w", o.GetKind(), o.GetNamespace(), o.GetName(), err, last)
	}
	return nil
}

// awaitPods waits until a pod in a namespace is placed as expected.
func (c *comparison) awaitPods(ctx context.Context, l *line, i int) error {
	at := l.selectNamespace(i)
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		_, last = at.createPod(ctx, 0, true)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("pods in namespace %s: %w: %w", l.namespaces[i], err, last)
	}
	return nil
}

// statuses are the kinds in which Gatekeeper reports processed objects: one object for each
// mutator and each constraint, with its kind in a label.
var statuses = []struct{ kind, label string }{
	{"MutatorPodStatus", "internal.gatekeeper.sh/mutator-kind"},
	{"ConstraintPodStatus", "internal.gatekeeper.sh/constraint-kind"},
}

// awaitIngested waits until Gatekeeper reports that it enforces all of the objects.
func (c *comparison) awaitIngested(ctx context.Context, objects []*unstructured.Unstructured) error {
	counts := map[string]int{}
	for _, o := range objects {
		if o.GetNamespace() == "" && o.GetKind() != "Namespace" {
			counts[o.GetKind()]++
		}
	}
	if len(counts) == 0 {
		return nil
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, ingestPatience, true, func(ctx context.Context) (bool, error) {
		last = c.checkIngested(ctx, counts)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return nil
}

// checkIngested returns an error if Gatekeeper does not enforce all objects yet.
func (c *comparison) checkIngested(ctx context.Context, counts map[string]int) error {
	enforced := map[string]int{}
	for _, status := range statuses {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "status.gatekeeper.sh", Version: "v1beta1", Kind: status.kind + "List"})
		if err := c.admin.List(ctx, list); err != nil {
			return err
		}
		for _, o := range list.Items {
			if enforces, _, _ := unstructured.NestedBool(o.Object, "status", "enforced"); enforces {
				enforced[o.GetLabels()[status.label]]++
			}
		}
	}
	for kind, number := range counts {
		if enforced[kind] < number {
			return fmt.Errorf("only %d of %d %s are enforced", enforced[kind], number, kind)
		}
	}
	return nil
}
