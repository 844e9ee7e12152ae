package cli

import (
	"errors"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/operate/apply"
)

// findConflicts returns the fields and objects of other field managers that would be
// overwritten by writing objects of the file, or deleted.
func (p *proposal) findConflicts(written, deleted []client.Object) ([]apply.Conflict, error) {
	// Without its origin in a file, an object has the defaults of its kind.
	defaulted := indexByRef(&manifest.Declaration{Platforms: p.file.Platforms, Pools: p.file.Pools, Tenants: p.file.Tenants, Networks: p.file.Networks})
	live := indexByRef(p.live)
	var all []apply.Conflict
	for _, o := range written {
		ref := apply.RefOf(o)
		if live[ref] == nil || defaulted[ref] == nil {
			continue
		}
		found, err := apply.FindConflicts(live[ref], defaulted[ref])
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	for _, o := range deleted {
		if conflict, found := apply.FindDeletionConflict(o); found {
			all = append(all, conflict)
		}
	}
	return all, nil
}

func indexByRef(d *manifest.Declaration) map[apply.Ref]client.Object {
	all := map[apply.Ref]client.Object{}
	for _, o := range d.Objects() {
		all[apply.RefOf(o)] = o
	}
	return all
}

// checkConflicts refuses conflicts, or prints them with force.
func (a *app) checkConflicts(conflicts []apply.Conflict, force bool) error {
	if len(conflicts) == 0 {
		return nil
	}
	lines := make([]string, len(conflicts))
	for i, c := range conflicts {
		lines[i] = escapeLine(c.String())
	}
	if force {
		printSafely(a.err, "overwriting %s\n", strings.Join(lines, "\noverwriting "))
		return nil
	}
	return toFailure(errors.New("nothing was written: this would overwrite\n  " + strings.Join(lines, "\n  ") +
		"\nchange it there (the values of a Helm release, or a Git repository), put it into this file, or add --force"))
}

// splitHelmManaged separates the objects to write from the objects that Helm manages. The latter
// equal the file's: otherwise they are conflicts.
func (p *proposal) splitHelmManaged(objects []client.Object) (mine []client.Object, helms []apply.Change) {
	live := indexByRef(p.live)
	for _, o := range objects {
		if ref := apply.RefOf(o); live[ref] != nil && apply.IsHelmManaged(live[ref]) {
			helms = append(helms, apply.Change{Ref: ref, Action: apply.Unchanged})
			continue
		}
		mine = append(mine, o)
	}
	return mine, helms
}
