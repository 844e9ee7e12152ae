package main

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/hack/internal/tenants"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/walls/wall"
)

// These are the lines of the table: the kinds of policies on pods.
const (
	noPolicy     = "no policy"
	native       = "croft native"
	onGatekeeper = "croft on Gatekeeper"
	alone        = "Gatekeeper alone"
)

// engineLabel is the label of a namespace with its line's engine. Selectors are narrowed by it,
// so that the lines can be measured in one API server. It has no other purpose.
const engineLabel = "bench.croft.dev/engine"

// These are the values of the label. Namespaces without policy do not have it.
const (
	engineNative     = "native"
	engineGatekeeper = "gatekeeper"
)

// line is a set of namespaces whose pods are subject to the same policies.
type line struct {
	name  string
	admin client.Client
	// objects returns the objects of a number of tenants, in the order of their writes.
	objects func(count int) ([][]*unstructured.Unstructured, error)
	// key and pool are the nodeSelector that its pods must have after admission.
	key, pool string
	// namespaces are the existing namespaces.
	namespaces []string
}

// buildPlain returns namespaces without tenants, so that no policy matches their pods.
//
// There are as many as tenants, since the API server has extra work for the first pod in a
// namespace after half a minute: it asks etcd whether a quota or a limit range exists that is
// not in its cache. With a single namespace, which is always cached, that work would be
// attributed to the policies.
func buildPlain(count int) ([][]*unstructured.Unstructured, error) {
	all := make([][]*unstructured.Unstructured, count)
	for i := range all {
		namespace := &unstructured.Unstructured{}
		namespace.SetAPIVersion("v1")
		namespace.SetKind("Namespace")
		namespace.SetName(tenants.Name("plain", i))
		all[i] = []*unstructured.Unstructured{namespace}
	}
	return all, nil
}

// newLine returns a line without tenants.
func newLine(name string, admin client.Client) (*line, error) {
	l := &line{name: name, admin: admin}
	var err error
	switch name {
	case noPolicy:
		l.objects = buildPlain
	case native:
		err = l.useCroft(tenants.Platform, "n", engineNative)
	case onGatekeeper:
		err = l.useCroft(gatekeeperPlatform, "g", engineGatekeeper)
	default:
		l.objects, l.key, l.pool = buildByHand, documentKey, "pool-"+tenants.Name("a", 0)
	}
	return l, err
}

// selectNamespace returns the line with one of its namespaces.
func (l *line) selectNamespace(i int) *line {
	one := *l
	one.namespaces = l.namespaces[i : i+1]
	return &one
}

// gatekeeperPlatform is the same platform with the other engine.
var gatekeeperPlatform = strings.Replace(tenants.Platform, "platform:\n", "platform:\n  placement: Gatekeeper\n", 1)

// useCroft makes the line one of croft's tenants.
func (l *line) useCroft(platform, prefix, engine string) error {
	built, err := tenants.Build(platform)
	if err != nil {
		return err
	}
	l.key, l.pool = built.Platform.NodePoolKey, "shared"
	l.objects = func(count int) ([][]*unstructured.Unstructured, error) {
		built, err := tenants.Build(platform + tenants.RenderText(prefix, count))
		if err != nil {
			return nil, err
		}
		all := make([][]*unstructured.Unstructured, count)
		for i, tenant := range built.Tenants {
			if all[i], err = buildPlacing(&built.Platform, tenant, engine); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	return nil
}

// buildPlacing returns the objects of a tenant that a policy engine reads or consists of. Roles and
// network policies are left out, since they do not affect a pod's admission; so are quota and
// limits, since the API server enforces them with every engine. All of Gatekeeper's objects are
// included, even mutators of other kinds than pods: Gatekeeper evaluates the match of each.
func buildPlacing(p *estate.Platform, t *estate.Tenant, engine string) ([]*unstructured.Unstructured, error) {
	all, err := tenants.ToUnstructured(wall.TenantObjects(p, t))
	if err != nil {
		return nil, err
	}
	var kept []*unstructured.Unstructured
	for _, o := range all {
		switch {
		case o.GetKind() == "Namespace":
			labels := o.GetLabels()
			labels[engineLabel] = engine
			o.SetLabels(labels)
		case o.GetKind() != "TenantRules" && !strings.HasSuffix(o.GroupVersionKind().Group, ".gatekeeper.sh"):
			continue
		}
		kept = append(kept, o)
	}
	return kept, nil
}

// findNamespace returns the name of the namespace among a tenant's objects.
func findNamespace(objects []*unstructured.Unstructured) string {
	for _, o := range objects {
		if o.GetKind() == "Namespace" {
			return o.GetName()
		}
	}
	return ""
}

// checkPod returns an error if a line's pod was not placed, or was placed although the line has no
// engine.
func (l *line) checkPod(pod *corev1.Pod) error {
	switch got := pod.Spec.NodeSelector[l.key]; {
	case l.key == "" && len(pod.Spec.NodeSelector) > 0:
		return fmt.Errorf("a pod in namespace %s was placed, although no engine should place it: %v", pod.Namespace, pod.Spec.NodeSelector)
	case l.key != "" && !strings.HasPrefix(got, strings.TrimRight(l.pool, "0123456789")):
		return fmt.Errorf("a pod in namespace %s was not placed: its nodeSelector is %v", pod.Namespace, pod.Spec.NodeSelector)
	default:
		return nil
	}
}
