package nodenetworks

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listPlugins returns the DaemonSets that nodes need, with their pods. unread is the reason if
// they cannot be read; then nodes wait, and their condition contains the reason.
func (c *Controller) listPlugins(ctx context.Context) (p *plugins, unread string, err error) {
	if c.requiredPlugins.IsEmpty() {
		return newPlugins(labels.Nothing(), nil, nil), "", nil
	}
	in := client.InNamespace(c.requiredPlugins.Namespace)
	if unread, err = c.watchPlugins(ctx, in); err != nil || unread != "" {
		return nil, unread, err
	}
	var sets appsv1.DaemonSetList
	if err := c.client.List(ctx, &sets, in); err != nil {
		return nil, "", fmt.Errorf("list DaemonSets: %w", err)
	}
	var pods corev1.PodList
	if err := c.client.List(ctx, &pods, in, client.MatchingLabelsSelector{Selector: c.requiredPlugins.Labels}); err != nil {
		return nil, "", fmt.Errorf("list the pods of DaemonSets: %w", err)
	}
	return newPlugins(c.requiredPlugins.Labels, sets.Items, pods.Items), "", nil
}

// watchPlugins starts the watches of DaemonSets and their pods. It returns a reason if the
// right to read is missing: an informer would wait for the right without reporting it.
func (c *Controller) watchPlugins(ctx context.Context, in client.InNamespace) (unread string, err error) {
	if c.daemonSets == nil || c.watchingPlugins {
		return "", nil
	}
	for _, list := range []client.ObjectList{&appsv1.DaemonSetList{}, &corev1.PodList{}} {
		err := c.live.List(ctx, list, in, client.Limit(1))
		if apierrors.IsForbidden(err) {
			return fmt.Sprintf("croft's operator may not read the DaemonSets and pods of namespace %s: run croft install --agent again, "+
				"or upgrade the chart", in), nil
		}
		if err != nil {
			return "", fmt.Errorf("list the DaemonSets and pods of namespace %s: %w", in, err)
		}
	}
	watched, err := c.daemonSets.Look(ctx)
	c.watchingPlugins = len(watched) == len(pluginKinds)
	return "", err
}
