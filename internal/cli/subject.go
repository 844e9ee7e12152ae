package cli

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
)

// subjectFlags is the flag -f where it is optional. Without it, the declared objects of the
// cluster are read.
type subjectFlags struct{ fileFlags }

func (f *subjectFlags) addFlags(c *cobra.Command) {
	c.Flags().StringSliceVarP(&f.names, "filename", "f", nil,
		"check the walls of this file, for a cluster without croft's operator; by default the walls of the objects that the cluster declares")
}

// isRendered reports whether the walls are rendered from a file and applied by another tool
// than croft's operator.
func (f *subjectFlags) isRendered() bool { return len(f.names) > 0 }

// readSubject returns the declared objects of the files, or of the cluster without files.
func (a *app) readSubject(ctx context.Context, c client.Reader, files *subjectFlags) (*manifest.Declaration, error) {
	if files.isRendered() {
		file, err := files.parse(a.in)
		if err != nil {
			return nil, err
		}
		_, problems := estate.Build(file)
		return file, problems.Err()
	}
	live, err := readDeclaration(ctx, c)
	if err != nil {
		return nil, toFailure(err)
	}
	if len(live.Platforms) == 0 {
		return nil, failuref("this cluster has no Platform yet: declare one with `croft apply -f croft.yaml`, or name the file of its walls with -f")
	}
	return live, nil
}
