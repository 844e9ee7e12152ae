package cli

import (
	"errors"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/manifest"
)

// conflicts returns the fields and objects of other field managers that would be
// overwritten by writing objects of the file, or deleted.
func (p *proposal) conflicts(written, deleted []client.Object) ([]apply.Conflict, error) {
	// Without its origin in a file, an object has the defaults of its kind.
	defaulted := objectsByRef(&manifest.Declaration{Platforms: p.file.Platforms, Pools: p.file.Pools, Tenants: p.file.Tenants, Networks: p.file.Networks})
	live := objectsByRef(p.live)
	var all []apply.Conflict
	for _, o := range written {
		ref := apply.RefOf(o)
		if live[ref] == nil || defaulted[ref] == nil {
			continue
		}
		found, err := apply.Conflicts(live[ref], defaulted[ref])
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	for _, o := range deleted {
		if conflict, found := apply.DeletionConflict(o); found {
			all = append(all, conflict)
		}
	}
	return all, nil
}

func objectsByRef(d *manifest.Declaration) map[apply.Ref]client.Object {
	all := map[apply.Ref]client.Object{}
	for _, o := range d.Objects() {
		all[apply.RefOf(o)] = o
	}
	return all
}

// overwrites refuses conflicts, or prints them with force.
func (a *app) overwrites(conflicts []apply.Conflict, force bool) error {
	if len(conflicts) == 0 {
		return nil
	}
	lines := make([]string, len(conflicts))
	for i, c := range conflicts {
		lines[i] = inline(c.String())
	}
	if force {
		say(a.err, "overwriting %s\n", strings.Join(lines, "\noverwriting "))
		return nil
	}
	return failed(errors.New("nothing was written: this would overwrite\n  " + strings.Join(lines, "\n  ") +
		"\nchange it there (the values of a Helm release, or a Git repository), put it into this file, or add --force"))
}

// splitHelms separates the objects to write from the objects that Helm manages. The latter
// equal the file's: otherwise they are conflicts.
func (p *proposal) splitHelms(objects []client.Object) (mine []client.Object, helms []apply.Change) {
	live := objectsByRef(p.live)
	for _, o := range objects {
		if ref := apply.RefOf(o); live[ref] != nil && apply.HelmKeeps(live[ref]) {
			helms = append(helms, apply.Change{Ref: ref, Action: apply.Unchanged})
			continue
		}
		mine = append(mine, o)
	}
	return mine, helms
}
