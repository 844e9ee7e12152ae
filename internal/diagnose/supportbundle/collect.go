// Package supportbundle collects the data that a maintainer of croft needs to diagnose a
// cluster remotely, without credentials and, by default, without names. It never requests
// Secrets or ConfigMaps.
package supportbundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
)

// listedKind is a kind to list, with a filter for its objects.
type listedKind struct {
	// file is the file's name without .yaml; several kinds may share one.
	file string
	kind schema.GroupVersionKind
	// namespace and labels select the objects; if empty, all are selected.
	namespace string
	labels    map[string]string
	// keep selects objects; nil keeps all.
	keep func(*unstructured.Unstructured) bool
	// hidden objects are read only for their names, to redact them. Objects with ours are
	// defined by croft's release and contain no names.
	hidden, ownRelease bool
}

const admission = "admissionregistration.k8s.io"

func makeKind(group, version, name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: version, Kind: name}
}

// listKinds returns all kinds that are read, in order. It does not include Secrets and
// ConfigMaps, nor Elevations, which contain users' reasons and encrypted tokens.
func listKinds() []listedKind {
	croft := v1alpha1.GroupVersion
	ours := map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}
	system := v1alpha1.SystemNamespace
	return []listedKind{
		{file: "platform", kind: croft.WithKind("Platform")},
		{file: "pools", kind: croft.WithKind("Pool")},
		{file: "tenants", kind: croft.WithKind("Tenant")},
		{file: "secondarynetworks", kind: croft.WithKind("SecondaryNetwork")},
		{file: "tenantnamespaces", kind: croft.WithKind("TenantNamespace")},
		{file: "tenantcallers", kind: croft.WithKind("TenantCaller")},
		{file: "tenantrules", kind: croft.WithKind("TenantRules")},
		{file: "namespaces", kind: makeKind("", "v1", "Namespace"), hidden: true},
		{file: "nodes", kind: makeKind("", "v1", "Node"), hidden: true},
		{
			file: "definitions", kind: makeKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"), ownRelease: true,
			keep: isOwnDefinition,
		},
		{file: "policies", kind: makeKind(admission, "v1", "ValidatingAdmissionPolicy"), labels: ours, ownRelease: true},
		{file: "policies", kind: makeKind(admission, "v1", "MutatingAdmissionPolicy"), labels: ours, ownRelease: true},
		{file: "policybindings", kind: makeKind(admission, "v1", "ValidatingAdmissionPolicyBinding"), labels: ours, ownRelease: true},
		{file: "policybindings", kind: makeKind(admission, "v1", "MutatingAdmissionPolicyBinding"), labels: ours, ownRelease: true},
		{file: "operator", kind: makeKind("apps", "v1", "Deployment"), namespace: system},
		{file: "operator", kind: makeKind("", "v1", "Pod"), namespace: system},
		{file: "operator", kind: makeKind("coordination.k8s.io", "v1", "Lease"), namespace: system},
		{file: "nodepools", kind: makeKind("karpenter.sh", "v1", "NodePool")},
		{file: "nodeclaims", kind: makeKind("karpenter.sh", "v1", "NodeClaim")},
		{file: "nodeclasses", kind: makeKind("karpenter.k8s.aws", "v1", "EC2NodeClass"), labels: ours},
		{file: "nodeclasses", kind: makeKind("karpenter.kwok.sh", "v1alpha1", "KWOKNodeClass"), labels: ours},
		{file: "events", kind: makeKind("", "v1", "Event"), keep: isOwnEvent},
	}
}

// isOwnDefinition keeps the definitions of croft and Karpenter. trim removes their
// schemas.
func isOwnDefinition(o *unstructured.Unstructured) bool {
	return strings.HasSuffix(o.GetName(), "."+v1alpha1.GroupVersion.Group) || strings.Contains(o.GetName(), ".karpenter.")
}

// isOwnEvent keeps the events in croft's namespace, and events about objects of croft and
// Karpenter.
func isOwnEvent(o *unstructured.Unstructured) bool {
	about, _, _ := unstructured.NestedString(o.Object, "involvedObject", "apiVersion")
	return o.GetNamespace() == v1alpha1.SystemNamespace || strings.HasPrefix(about, v1alpha1.GroupVersion.Group+"/") ||
		strings.HasPrefix(about, "karpenter.")
}

// Collector collects from one cluster, with the rights of its clients' user.
type Collector struct {
	Client client.Reader
	// Logs reads the operator's logs; nil for no logs.
	Logs kubernetes.Interface
	// Server is the API server's address, whose host is redacted, too.
	Server string
	// Redactor replaces names; nil keeps them.
	Redactor *Redactor
}

// File is one file of a bundle.
type File struct {
	Name    string
	Content []byte
}

// Bundle is the collected data.
type Bundle struct {
	Files []File
	// Unreadable lists the data that could not be read, with the reasons.
	Unreadable []string
}

// Collect reads the cluster. Reports are texts and values of other commands, by the names
// of their files; they are redacted, too. A missing right is no error.
func (c *Collector) Collect(ctx context.Context, reports map[string]any) (*Bundle, error) {
	b := &Bundle{}
	objects, ownNamespaces := map[string][]*unstructured.Unstructured{}, map[string]bool{}
	var order []string
	for _, l := range listKinds() {
		list, err := c.listObjects(ctx, l)
		switch {
		case apierrors.IsForbidden(err):
			b.Unreadable = append(b.Unreadable, l.kind.GroupKind().String()+": you may not list them")
			continue
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
			b.Unreadable = append(b.Unreadable, l.kind.GroupKind().String()+": the cluster does not serve the kind")
			continue
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", l.kind.GroupKind(), err)
		}
		for _, o := range list {
			if !l.ownRelease {
				c.Redactor.Learn(o)
			}
		}
		if l.ownRelease {
			ownNamespaces[l.file] = true
		}
		if l.hidden {
			continue
		}
		if !slices.Contains(order, l.file) {
			order = append(order, l.file)
		}
		objects[l.file] = append(objects[l.file], list...)
	}
	if c.Redactor != nil {
		c.Redactor.LearnServer(c.Server)
	}
	logs, unread := c.readLogs(ctx, objects["operator"])
	b.Unreadable = append(b.Unreadable, unread...)
	// The redactor has learned all names only now.
	for _, name := range order {
		redactor := c.Redactor
		if ownNamespaces[name] {
			redactor = nil
		}
		if err := b.addObjects(redactor, "objects/"+name+".yaml", objects[name]); err != nil {
			return nil, err
		}
	}
	for _, log := range logs {
		text := c.Redactor.RedactText(scrubText(string(log.Content)))
		b.Files = append(b.Files, File{"logs/" + c.Redactor.RedactText(log.Name), []byte(text)})
	}
	for name, report := range reports {
		if err := b.addReport(c.Redactor, name, report); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(b.Files, func(x, y File) int { return strings.Compare(x.Name, y.Name) })
	for i, line := range b.Unreadable {
		b.Unreadable[i] = c.Redactor.RedactText(line)
	}
	return b, nil
}

func (c *Collector) listObjects(ctx context.Context, l listedKind) ([]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(l.kind.GroupVersion().WithKind(l.kind.Kind + "List"))
	opts := []client.ListOption{client.InNamespace(l.namespace)}
	if l.labels != nil {
		opts = append(opts, client.MatchingLabels(l.labels))
	}
	err := c.Client.List(ctx, list, opts...)
	if i := slices.Index(apply.NativePlatformKinds, l.kind); i >= 0 && meta.IsNoMatchError(err) {
		l.kind = apply.NativeBetaKinds[i]
		return c.listObjects(ctx, l)
	}
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for i := range list.Items {
		if o := &list.Items[i]; l.keep == nil || l.keep(o) {
			all = append(all, o)
		}
	}
	return all, nil
}

// These are the maximum lines and bytes of a container's log that are read.
const (
	logLines = 20_000
	logBytes = 8 << 20
)

// readLogs returns the logs of the operator's pods, also from before the last restart of each
// container.
func (c *Collector) readLogs(ctx context.Context, objects []*unstructured.Unstructured) (logs []File, unread []string) {
	for _, o := range objects {
		if c.Logs == nil || o.GetKind() != "Pod" || o.GetLabels()["app.kubernetes.io/name"] != v1alpha1.ManagedBy {
			continue
		}
		for _, previous := range []bool{false, true} {
			name := o.GetName() + ".log"
			if previous {
				name = o.GetName() + ".previous.log"
			}
			stream, err := c.Logs.CoreV1().Pods(o.GetNamespace()).GetLogs(o.GetName(), &corev1.PodLogOptions{
				Previous: previous, TailLines: ptr.To[int64](logLines), LimitBytes: ptr.To[int64](logBytes),
			}).Stream(ctx)
			if previous && apierrors.IsBadRequest(err) {
				continue // the container has not restarted
			}
			var text []byte
			if err == nil {
				text, err = io.ReadAll(stream)
				err = errors.Join(err, stream.Close())
			}
			if err != nil {
				unread = append(unread, "the log "+name+": "+err.Error())
				continue
			}
			logs = append(logs, File{name, text})
		}
	}
	return logs, unread
}

func (b *Bundle) addObjects(r *Redactor, name string, objects []*unstructured.Unstructured) error {
	var documents []string
	for _, o := range objects {
		scrubObject(o)
		trimDefinition(o)
		text, err := yaml.Marshal(r.RedactValue("", o.Object))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		documents = append(documents, string(text))
	}
	b.Files = append(b.Files, File{name, []byte(strings.Join(documents, "---\n"))})
	return nil
}

// trimDefinition reduces a definition to its served versions and its status.
func trimDefinition(o *unstructured.Unstructured) {
	versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
	if o.GetKind() != "CustomResourceDefinition" {
		return
	}
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok {
			delete(version, "schema")
		}
	}
	o.Object["spec"] = map[string]any{"versions": versions}
}

func (b *Bundle) addReport(r *Redactor, name string, report any) error {
	if text, ok := report.(string); ok {
		b.Files = append(b.Files, File{name, []byte(r.RedactText(scrubText(text)))})
		return nil
	}
	text, err := yaml.Marshal(report)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if text, err = yaml.Marshal(r.RedactValue("", scrubValue("", value))); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	b.Files = append(b.Files, File{name, text})
	return nil
}
