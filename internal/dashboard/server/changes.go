package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/dashboard/cluster"
	"croft.dev/croft/internal/dashboard/page"
	"croft.dev/croft/internal/diagnose/why"
	"croft.dev/croft/internal/prove/warning"
)

// change is a change of a workload.
type change struct {
	name  string
	kinds []string
	// describe fills in the confirmation page, and returns the patch. A request that it
	// refuses has no patch.
	describe func(target why.Target, r *http.Request) (page.Confirmation, map[string]any)
}

// changes are the same changes as kubectl's.
var changes = []change{
	{"restart", []string{"deployment", "statefulset", "daemonset"}, describeRestart},
	{"scale", []string{"deployment", "statefulset"}, describeScale},
}

// restartedAt is the annotation with which kubectl restarts pods.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

func describeRestart(target why.Target, _ *http.Request) (page.Confirmation, map[string]any) {
	annotations := map[string]any{restartedAt: time.Now().Format(time.RFC3339)}
	return page.Confirmation{
		Question: page.T("Restart %s?", target.String()), Button: page.T("Restart"), Effect: page.T("Kubernetes replaces all its pods, as its strategy has it."),
		Command: "kubectl rollout restart " + target.String() + " -n " + target.Namespace,
	}, map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": annotations}}}}
}

func describeScale(target why.Target, r *http.Request) (page.Confirmation, map[string]any) {
	replicas, err := strconv.ParseInt(r.PostForm.Get("replicas"), 10, 32)
	if err != nil || replicas < 0 {
		return page.Confirmation{
			Question: page.T("Change %s?", target.String()), Refused: page.T("the number of replicas must be a whole number, 0 or more"),
		}, nil
	}
	number := strconv.FormatInt(replicas, 10)
	return page.Confirmation{
		Question: page.T("Scale %s to %s?", target.String(), number), Button: page.T("Scale"), Fields: map[string]string{"replicas": number},
		Effect:  page.T("Kubernetes starts or deletes pods until there are %s. An autoscaler of the workload can change the number again.", number),
		Command: "kubectl scale " + target.String() + " --replicas=" + number + " -n " + target.Namespace,
	}, map[string]any{"spec": map[string]any{"replicas": replicas}}
}

// newWorkload returns an empty object of a kind that has changes, or nil.
func newWorkload(kind string) client.Object {
	switch kind {
	case "deployment":
		return &appsv1.Deployment{}
	case "statefulset":
		return &appsv1.StatefulSet{}
	case "daemonset":
		return &appsv1.DaemonSet{}
	default:
		return nil
	}
}

// listChanges returns the changes of a kind, with the present number of replicas.
func listChanges(o client.Object, kind string) []page.Change {
	var all []page.Change
	for _, c := range changes {
		if slices.Contains(c.kinds, kind) {
			all = append(all, page.Change{Name: c.name})
		}
	}
	var replicas *int32
	switch o := o.(type) {
	case *appsv1.Deployment:
		replicas = o.Spec.Replicas
	case *appsv1.StatefulSet:
		replicas = o.Spec.Replicas
	}
	for i := range all {
		if all[i].Name == "scale" {
			all[i].Replicas = replicas
		}
	}
	return all
}

// changeWorkload shows a page that asks for confirmation, after a dry run. A confirmed change is
// sent to the cluster with the user's token. The object is read first, so that a hidden object and a missing
// one are the same.
func changeWorkload(ctx context.Context, c *cluster.Client, r *http.Request) (page.Page, string, error) {
	target, err := readTarget(r, r.PathValue("kind"))
	if err != nil {
		return page.Page{}, "", err
	}
	i := slices.IndexFunc(changes, func(c change) bool { return c.name == r.PathValue("change") && slices.Contains(c.kinds, target.Kind) })
	o := newWorkload(target.Kind)
	if i < 0 || o == nil {
		return page.Page{}, "", errMissing
	}
	if err := c.Get(ctx, client.ObjectKey{Namespace: target.Namespace, Name: target.Name}, o); err != nil {
		return page.Page{}, "", err
	}
	path := page.Link("namespaces", target.Namespace, "workloads", target.Kind, target.Name)
	body, patch := changes[i].describe(target, r)
	body.Back, body.Action = path, path+"/"+changes[i].name
	if patch == nil {
		return page.NewConfirmation(target, body), "", nil
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return page.Page{}, "", fmt.Errorf("write the patch of %s: %w", target, err)
	}
	opts := []client.PatchOption{client.FieldOwner("croft-dashboard")}
	confirmed := r.PostForm.Get("confirmed") == "yes"
	if !confirmed {
		opts = append(opts, client.DryRunAll)
	}
	ctx, warnings := warning.Record(ctx)
	err = c.Patch(ctx, o, client.RawPatch(types.MergePatchType, data), opts...)
	var status apierrors.APIStatus
	switch {
	case err == nil && confirmed:
		return page.Page{}, path, nil
	case apierrors.IsUnauthorized(err), err != nil && !errors.As(err, &status):
		return page.Page{}, "", err
	case err != nil:
		body.Refused = page.Raw(status.Status().Message)
	}
	body.Warnings = warnings.List()
	return page.NewConfirmation(target, body), "", nil
}
