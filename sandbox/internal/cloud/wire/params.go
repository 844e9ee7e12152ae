package wire

import (
	"net/url"
	"strconv"
	"strings"
)

// Params are the parameters of a call in one of the query protocols, which write a structure
// as a prefix and a list as numbers: Filter.1.Value.2=x.
type Params struct {
	values url.Values
	prefix string
}

// String returns a parameter's value, "" if there is none.
func (p Params) String(key string) string { return p.values.Get(p.prefix + key) }

// Int returns a parameter's value as a number, 0 if there is none.
func (p Params) Int(key string) int {
	n, err := strconv.Atoi(p.String(key))
	if err != nil {
		return 0
	}
	return n
}

// Bool reports whether a parameter is true.
func (p Params) Bool(key string) bool { return p.String(key) == "true" }

// Has reports whether the call has a parameter, or any parameter below it.
func (p Params) Has(key string) bool {
	for name := range p.values {
		rest, ok := strings.CutPrefix(name, p.prefix+key)
		if ok && (rest == "" || rest[0] == '.') {
			return true
		}
	}
	return false
}

// GetStructure returns the parameters of a structure.
func (p Params) GetStructure(key string) Params {
	return Params{values: p.values, prefix: p.prefix + key + "."}
}

// ListStructures returns the parameters of each structure in a list. EC2 numbers the elements of a list,
// the other services the elements of its "member".
func (p Params) ListStructures(key string) []Params {
	var all []Params
	for _, list := range []string{key, key + ".member"} {
		for i := 1; p.Has(list + "." + strconv.Itoa(i)); i++ {
			all = append(all, p.GetStructure(list+"."+strconv.Itoa(i)))
		}
	}
	return all
}

// ListStrings returns the values of a list.
func (p Params) ListStrings(key string) []string {
	var all []string
	for _, list := range []string{key, key + ".member"} {
		for i := 1; p.Has(list + "." + strconv.Itoa(i)); i++ {
			all = append(all, p.String(list+"."+strconv.Itoa(i)))
		}
	}
	return all
}

// ReadFilters returns EC2's filters: names, each with values of which one has to match.
func (p Params) ReadFilters() map[string][]string {
	filters := map[string][]string{}
	for _, f := range p.ListStructures("Filter") {
		filters[f.String("Name")] = f.ListStrings("Value")
	}
	return filters
}

// ListAll returns all parameters below this one, by their names relative to it.
func (p Params) ListAll() map[string]string {
	given := map[string]string{}
	for key, values := range p.values {
		if rest, ok := strings.CutPrefix(key, p.prefix); ok && len(values) > 0 {
			given[rest] = values[0]
		}
	}
	return given
}
