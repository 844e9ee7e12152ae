package gitserver

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

var gitRepositories = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"}

// lookAgain is the interval at which all GitRepositories are reconciled, in case a status was
// not written.
const lookAgain = 10 * time.Second

// Sources reconciles the status of GitRepositories that name repositories of this server, and
// ignores all others.
type Sources struct {
	server  *Server
	address string // http://host:port
	client  dynamic.Interface
	wake    chan struct{}
}

// NewSources returns the replacement of source-controller for the server at an address.
func NewSources(server *Server, address string, client dynamic.Interface) *Sources {
	s := &Sources{server: server, address: address, client: client, wake: make(chan struct{}, 1)}
	server.pushed = s.Wake
	return s
}

// Wake requests that all GitRepositories are reconciled now.
func (s *Sources) Wake() {
	select {
	case s.wake <- struct{}{}:
	default: // woken, and not reconciled yet
	}
}

// Run reconciles after each push, and after each change of a GitRepository, until the context
// ends.
func (s *Sources) Run(ctx context.Context) error {
	informers := dynamicinformer.NewDynamicSharedInformerFactory(s.client, lookAgain)
	informer := informers.ForResource(gitRepositories)
	wake := func(any) { s.Wake() }
	_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: wake, UpdateFunc: func(any, any) { s.Wake() }, DeleteFunc: wake,
	})
	if err != nil {
		return err
	}
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		}
		all, err := informer.Lister().List(labels.Everything())
		if err != nil {
			return err
		}
		for _, o := range all {
			if err := s.reconcile(ctx, o); err != nil {
				slog.Error("GitRepository", "error", err)
			}
		}
	}
}

// gitRepository is the part of a GitRepository that is read here.
type gitRepository struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		URL     string `json:"url"`
		Suspend bool   `json:"suspend"`
		Ref     struct {
			Branch string `json:"branch"`
			Tag    string `json:"tag"`
		} `json:"ref"`
	} `json:"spec"`
	Status status `json:"status"`
}

type status struct {
	ObservedGeneration int64              `json:"observedGeneration"`
	Conditions         []metav1.Condition `json:"conditions"`
	Artifact           *artifact          `json:"artifact,omitempty"`
}

// reconcile writes the status of one GitRepository, if it names a repository of this server and
// the status differs.
func (s *Sources) reconcile(ctx context.Context, o runtime.Object) error {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("got a %T", o)
	}
	var live gitRepository
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &live); err != nil {
		return fmt.Errorf("%s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	path, ours := strings.CutPrefix(live.Spec.URL, s.address+"/")
	if !ours || live.Spec.Suspend || live.DeletionTimestamp != nil {
		return nil
	}
	desired := s.buildStatus(strings.TrimSuffix(path, ".git"), &live)
	if len(live.Status.Conditions) == 1 && equalConditions(&live.Status.Conditions[0], &desired.Conditions[0]) && reflect.DeepEqual(live.Status.Artifact, desired.Artifact) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": desired})
	if err != nil {
		return err
	}
	_, err = s.client.Resource(gitRepositories).Namespace(live.Namespace).Patch(ctx, live.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// equalConditions reports whether two conditions are equal, except for their transition times.
func equalConditions(a, b *metav1.Condition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message && a.ObservedGeneration == b.ObservedGeneration
}

// buildStatus returns the desired status of a GitRepository, with source-controller's reasons and
// messages. It keeps the previous artifact if the repository cannot be read.
func (s *Sources) buildStatus(repository string, live *gitRepository) status {
	branch := live.Spec.Ref.Branch
	if branch == "" {
		branch = "main"
	}
	now := metav1.Now()
	ready := metav1.Condition{Type: "Ready", ObservedGeneration: live.Generation, LastTransitionTime: now}
	a, err := s.buildArtifact(repository, branch, live.Spec.Ref.Tag)
	if err != nil {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "GitOperationFailed", "failed to checkout and determine revision: "+err.Error()
		return status{ObservedGeneration: live.Generation, Conditions: []metav1.Condition{ready}, Artifact: live.Status.Artifact}
	}
	ready.Status, ready.Reason, ready.Message = metav1.ConditionTrue, "Succeeded", fmt.Sprintf("stored artifact for revision '%s'", a.Revision)
	if before := live.Status.Artifact; before != nil && before.Revision == a.Revision {
		a.LastUpdateTime = before.LastUpdateTime
	} else {
		a.LastUpdateTime = now.UTC().Format(time.RFC3339)
	}
	return status{ObservedGeneration: live.Generation, Conditions: []metav1.Condition{ready}, Artifact: a}
}

func (s *Sources) buildArtifact(repository, branch, tag string) (*artifact, error) {
	if !repositoryName.MatchString(repository) {
		return nil, fmt.Errorf("repository %s not found", repository)
	}
	commit, revision, err := s.server.resolveRef(repository, branch, tag)
	if err != nil {
		return nil, err
	}
	a, err := s.server.storeArtifact(repository, commit, revision)
	if err == nil {
		a.URL = s.address + artifactPath + a.Path
	}
	return a, err
}
