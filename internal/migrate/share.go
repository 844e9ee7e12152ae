package migrate

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"croft.dev/croft/api/v1alpha1"
)

// share moves the node class that most pools have to the platform.
func (d *draft) share() {
	if (d.platform.NodeClass == v1alpha1.NodeClass{}) {
		d.chooseClass()
	}
	base := d.platform.NodeClass.AWS
	for _, name := range slices.Sorted(maps.Keys(d.pools)) {
		p := d.pools[name]
		if p.spec.NodeClass == nil || p.spec.NodeClass.AWS == nil || p.from.Group() == v1alpha1.GroupVersion.Group {
			continue
		}
		class, same := d.slim(base, p.spec.NodeClass.AWS, p.readBack)
		if !same {
			d.note("pool %s takes over from platform.nodeClass.aws what its own does not say: look whether its nodes want it", name)
		}
		for _, field := range leftOut(base, p.spec.NodeClass.AWS, class) {
			d.renames[poolField(name, "nodeClass.aws."+field)] = "platform.nodeClass.aws." + field
		}
		p.spec.NodeClass = &v1alpha1.NodeClass{AWS: class}
		if base != nil && reflect.ValueOf(*class).IsZero() {
			p.spec.NodeClass = nil
		}
	}
}

// chooseClass finds the class for the platform. A pool's class of AWS is laid over
// it, so that it must not say what another pool's leaves open; if each does, every
// pool keeps its own.
func (d *draft) chooseClass() {
	pools := d.poolsByClass()
	classes := slices.SortedFunc(maps.Keys(pools), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(pools[b]), len(pools[a])), cmp.Compare(a, b))
	})
	if len(classes) == 0 {
		return
	}
	most := classes[0]
	class := func(key string) *v1alpha1.NodeClass { return d.pools[pools[key][0]].spec.NodeClass }
	inheriting := d.inheriting(class(most), pools[most])
	i := 0
	if class(most).AWS != nil {
		i = slices.IndexFunc(classes, func(c string) bool { return class(c).AWS != nil && d.laysUnder(class(c).AWS) })
	}
	if i != 0 {
		for _, p := range inheriting {
			p.spec.NodeClass = class(most).DeepCopy()
		}
	}
	if i < 0 {
		d.platform.NodeClass = v1alpha1.NodeClass{AWS: &v1alpha1.AWSNodeClass{}}
		return
	}
	chosen := classes[i]
	d.platform.NodeClass = *class(chosen).DeepCopy()
	if aws := d.platform.NodeClass.AWS; aws != nil {
		readBack := !slices.ContainsFunc(pools[chosen], func(name string) bool { return !d.pools[name].readBack })
		d.platform.NodeClass.AWS, _ = d.slim(nil, aws, readBack)
	}
	for _, name := range pools[chosen] {
		d.pools[name].spec.NodeClass = nil
		d.renames["pools."+name+".nodeClass"] = "platform.nodeClass"
	}
}

func (d *draft) poolsByClass() map[string][]string {
	pools := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(d.pools)) {
		if class := d.pools[name].spec.NodeClass; class != nil {
			if data, err := json.Marshal(class); err == nil {
				pools[string(data)] = append(pools[string(data)], name)
			}
		}
	}
	return pools
}

// inheriting are the pools of which nothing says what their nodes are made from:
// they have what most others have.
func (d *draft) inheriting(class *v1alpha1.NodeClass, from []string) []*pool {
	var (
		names []string
		all   []*pool
	)
	for _, name := range slices.Sorted(maps.Keys(d.pools)) {
		if p := d.pools[name]; p.from.Kind == kindValues {
			names, all = append(names, name), append(all, p)
		}
	}
	if len(names) > 0 {
		tags := ""
		if class.Ref != nil {
			tags = ", with its tags if it has any"
		}
		d.note("nothing that was read says what the nodes of %s are made from: they have the platform's nodeClass, which is that of %s%s",
			strings.Join(names, ", "), strings.Join(from, ", "), tags)
	}
	return all
}

// laysUnder says whether every pool's class stays as it is over this one.
func (d *draft) laysUnder(base *v1alpha1.AWSNodeClass) bool {
	for _, p := range d.pools {
		if class := p.spec.NodeClass; class != nil && class.AWS != nil {
			if _, same := d.slim(base, class.AWS, p.readBack); !same {
				return false
			}
		}
	}
	return true
}
