package gather_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/diagnose/gather"
)

// answers returns its next error for each read.
type answers struct {
	client.Reader
	errs []error
}

func (a *answers) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	err := a.errs[0]
	a.errs = a.errs[1:]
	return err
}

// TestReader expects that missing rights and missing objects are no error, and that nothing is
// read after an error.
func TestReader(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	broken := errors.New("connection refused")
	a := &answers{errs: []error{
		nil, apierrors.NewForbidden(pods, "web", nil), apierrors.NewNotFound(pods, "web"), broken, nil,
	}}
	var omitted []string
	r := gather.NewReader(a, func(data string, err error) bool {
		if apierrors.IsForbidden(err) {
			omitted = append(omitted, data)
		}
		return apierrors.IsForbidden(err)
	})
	for i, want := range []bool{true, false, false, false, false} {
		if i == 3 && r.Err() != nil {
			t.Fatalf("error before the failed read: %v", r.Err())
		}
		if got := r.ReadObject(t.Context(), "pods", client.ObjectKey{Name: "web"}, &corev1.Pod{}); got != want {
			t.Errorf("read %d: %t, want %t", i, got, want)
		}
	}
	r.Fail(errors.New("a later error"))
	if len(omitted) != 1 || len(a.errs) != 1 || !errors.Is(r.Err(), broken) || r.Err().Error() != "read pods: connection refused" {
		t.Errorf("omitted %v, %d reads left, error %v", omitted, len(a.errs), r.Err())
	}
}
