// Package gather reads the objects for a diagnosis. It reads with the caller's rights, which may
// not suffice for all of them: a diagnosis without these objects is better than none.
package gather

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reader reads objects. Once a read has failed it reads nothing more, so that its user checks for
// an error only at the end.
type Reader struct {
	from client.Reader
	omit func(data string, err error) bool
	err  error
}

// NewReader returns a Reader. It calls omit for each error of a read, with the name of the data.
// If omit returns true, the diagnosis does without the data, and omit has recorded this.
func NewReader(from client.Reader, omit func(data string, err error) bool) *Reader {
	return &Reader{from: from, omit: omit}
}

// Err returns the first error that was not omitted.
func (r *Reader) Err() error { return r.err }

// Fail records an error other than of a read, and ends the reads. It ignores nil.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// Record records the result of a read of data, and reports whether the data was read. Objects and
// kinds that do not exist are no error.
func (r *Reader) Record(data string, err error) bool {
	switch {
	case err == nil:
		return r.err == nil
	case r.err != nil, r.omit(data, err), apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return false
	default:
		r.err = fmt.Errorf("read %s: %w", data, err)
		return false
	}
}

// ReadObject reads an object, and reports whether it was read.
func (r *Reader) ReadObject(ctx context.Context, data string, key client.ObjectKey, into client.Object) bool {
	return r.err == nil && r.Record(data, r.from.Get(ctx, key, into))
}

// ReadList reads a list, and reports whether it was read.
func (r *Reader) ReadList(ctx context.Context, data string, into client.ObjectList, opts ...client.ListOption) bool {
	return r.err == nil && r.Record(data, r.from.List(ctx, into, opts...))
}
