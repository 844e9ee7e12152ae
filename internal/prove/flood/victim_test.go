package flood

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// refusingClient refuses the first creations with the given errors.
type refusingClient struct {
	client.WithWatch
	refusals []error
}

func (r *refusingClient) Create(context.Context, client.Object, ...client.CreateOption) error {
	if len(r.refusals) == 0 {
		return nil
	}
	refusal := r.refusals[0]
	r.refusals = r.refusals[1:]
	return refusal
}

// TestCreateRepeatsConflicts refuses a pod of the victim. It must repeat conflicts about its quota, and nothing else.
func TestCreateRepeatsConflicts(t *testing.T) {
	conflict := apierrors.NewConflict(corev1.Resource("resourcequotas"), "croft", errors.New("it has been modified"))
	full := apierrors.NewForbidden(corev1.Resource("pods"), "web", errors.New("exceeded quota"))
	for _, test := range []struct {
		name     string
		refusals []error
		want     error
	}{
		{"two conflicts", []error{conflict, conflict}, nil},
		{"a full quota", []error{full}, full},
	} {
		v := &victim{client: &refusingClient{refusals: test.refusals}}
		if err := v.create(t.Context(), &corev1.Pod{}); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
}
