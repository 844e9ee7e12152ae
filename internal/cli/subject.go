package cli

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/manifest"
)

// subjectFlags is the flag -f where it is optional. Without it, the declared objects of the
// cluster are read.
type subjectFlags struct{ fileFlags }

func (f *subjectFlags) add(c *cobra.Command) {
	c.Flags().StringSliceVarP(&f.names, "filename", "f", nil,
		"look at the walls of this file, for a cluster without croft's operator; by default of what the cluster declares")
}

// rendered reports whether the walls are rendered from a file and applied by another tool
// than croft's operator.
func (f *subjectFlags) rendered() bool { return len(f.names) > 0 }

// subject returns the declared objects of the files, or of the cluster without files.
func (a *app) subject(ctx context.Context, c client.Reader, files *subjectFlags) (*manifest.Declaration, error) {
	if files.rendered() {
		file, err := files.parse(a.in)
		if err != nil {
			return nil, err
		}
		_, problems := estate.Build(file)
		return file, problems.Err()
	}
	live, err := declared(ctx, c)
	if err != nil {
		return nil, failed(err)
	}
	if len(live.Platforms) == 0 {
		return nil, failedf("this cluster has no Platform yet: declare one with `croft apply -f croft.yaml`, or name the file whose walls it has with -f")
	}
	return live, nil
}
