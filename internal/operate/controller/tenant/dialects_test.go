package tenant

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/outcome"
	"croft.dev/croft/internal/walls/wall/network"
)

// TestMergeDialectErrors fails if a missing dialect is reported for each policy, or if other
// errors are lost.
func TestMergeDialectErrors(t *testing.T) {
	platform := &estate.Platform{}
	platform.Network.Dialect = v1alpha1.DialectCalico
	kind := network.ListKinds(platform)[0]
	missing := &meta.NoKindMatchError{GroupKind: kind.GroupKind()}
	of := func(err error) error { return &apply.ObjectError{Ref: apply.Ref{GroupVersionKind: kind}, Err: err} }
	refused := errors.New("refused")
	all := errors.Join(of(missing), of(refused), of(missing))

	merged := outcome.Leaves(mergeDialectErrors(platform, nil, all))
	var dialect *apply.DialectError
	if len(merged) != 2 || !errors.Is(merged[0], refused) || !errors.As(merged[1], &dialect) || dialect.Dialect != v1alpha1.DialectCalico || dialect.Kind != kind {
		t.Errorf("got %v", merged)
	}
	if got := mergeDialectErrors(platform, network.ListKinds(platform), all); got.Error() != all.Error() {
		t.Errorf("a served dialect: %v", got)
	}
	if err := mergeDialectErrors(platform, nil, nil); err != nil {
		t.Errorf("without errors: %v", err)
	}
	platform.Network.Dialect = v1alpha1.DialectKubernetes
	if got := mergeDialectErrors(platform, nil, refused); got.Error() != refused.Error() {
		t.Errorf("a dialect that every cluster serves: %v", got)
	}
}
