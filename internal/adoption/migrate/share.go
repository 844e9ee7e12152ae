package migrate

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// shareNodeClass moves the node class of most pools to the platform.
func shareNodeClass(d *draft.Draft) {
	if (d.Platform.NodeClass == v1alpha1.NodeClass{}) {
		chooseClass(d)
	}
	base := d.Platform.NodeClass.AWS
	for _, name := range slices.Sorted(maps.Keys(d.Pools)) {
		p := d.Pools[name]
		if p.Spec.NodeClass == nil || p.Spec.NodeClass.AWS == nil || p.From.Group() == v1alpha1.GroupVersion.Group {
			continue
		}
		class, same := slimClass(d, base, p.Spec.NodeClass.AWS, p.ReadBack)
		if !same {
			d.AddNote("pool %s inherits the settings of platform.nodeClass.aws that its own node class does not have: check whether its nodes should have them", name)
		}
		for _, field := range listOmitted(base, p.Spec.NodeClass.AWS, class) {
			d.Renames[draft.PoolField(name, "nodeClass.aws."+field)] = "platform.nodeClass.aws." + field
		}
		p.Spec.NodeClass = &v1alpha1.NodeClass{AWS: class}
		if base != nil && reflect.ValueOf(*class).IsZero() {
			p.Spec.NodeClass = nil
		}
	}
}

// chooseClass selects the class for the platform. A pool's AWS class is merged over it, so it
// must not set a field that another pool's class leaves unset. If every class does, each pool
// keeps its own.
func chooseClass(d *draft.Draft) {
	pools := groupByClass(d)
	classes := slices.SortedFunc(maps.Keys(pools), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(pools[b]), len(pools[a])), cmp.Compare(a, b))
	})
	if len(classes) == 0 {
		return
	}
	mostUsed := classes[0]
	class := func(key string) *v1alpha1.NodeClass { return d.Pools[pools[key][0]].Spec.NodeClass }
	inheriting := listInheriting(d, class(mostUsed), pools[mostUsed])
	i := 0
	if class(mostUsed).AWS != nil {
		i = slices.IndexFunc(classes, func(c string) bool { return class(c).AWS != nil && isCommonBase(d, class(c).AWS) })
	}
	if i != 0 {
		for _, p := range inheriting {
			p.Spec.NodeClass = class(mostUsed).DeepCopy()
		}
	}
	if i < 0 {
		d.Platform.NodeClass = v1alpha1.NodeClass{AWS: &v1alpha1.AWSNodeClass{}}
		return
	}
	chosen := classes[i]
	d.Platform.NodeClass = *class(chosen).DeepCopy()
	if aws := d.Platform.NodeClass.AWS; aws != nil {
		readBack := !slices.ContainsFunc(pools[chosen], func(name string) bool { return !d.Pools[name].ReadBack })
		d.Platform.NodeClass.AWS, _ = slimClass(d, nil, aws, readBack)
	}
	for _, name := range pools[chosen] {
		d.Pools[name].Spec.NodeClass = nil
		d.Renames["pools."+name+".nodeClass"] = "platform.nodeClass"
	}
}

func groupByClass(d *draft.Draft) map[string][]string {
	pools := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(d.Pools)) {
		if class := d.Pools[name].Spec.NodeClass; class != nil {
			if data, err := json.Marshal(class); err == nil {
				pools[string(data)] = append(pools[string(data)], name)
			}
		}
	}
	return pools
}

// listInheriting returns the pools of a values file without their own node class. They get the most
// common one.
func listInheriting(d *draft.Draft, class *v1alpha1.NodeClass, from []string) []*draft.Pool {
	var (
		names []string
		all   []*draft.Pool
	)
	for _, name := range slices.Sorted(maps.Keys(d.Pools)) {
		if p := d.Pools[name]; p.From.Kind == source.KindValues {
			names, all = append(names, name), append(all, p)
		}
	}
	if len(names) > 0 {
		tags := ""
		if class.Ref != nil {
			tags = ", including its tags"
		}
		d.AddNote("the input has no node class for the nodes of %s: they get the platform's nodeClass, which comes from %s%s",
			strings.Join(names, ", "), strings.Join(from, ", "), tags)
	}
	return all
}

// isCommonBase reports whether every pool's class is unchanged when it is merged over this one.
func isCommonBase(d *draft.Draft, base *v1alpha1.AWSNodeClass) bool {
	for _, p := range d.Pools {
		if class := p.Spec.NodeClass; class != nil && class.AWS != nil {
			if _, same := slimClass(d, base, class.AWS, p.ReadBack); !same {
				return false
			}
		}
	}
	return true
}
