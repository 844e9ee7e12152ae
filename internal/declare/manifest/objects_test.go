package manifest

import (
	"errors"
	"strings"
	"testing"
)

// TestObjectFiles requires the manifests of files in place of their paths, in the order of the list.
func TestObjectFiles(t *testing.T) {
	files := map[string]string{
		"objects/two.yaml":   "kind: ConfigMap\nmetadata: {name: a}\n---\n# none\n---\nkind: ConfigMap\nmetadata: {name: b}\n",
		"objects/empty.yaml": "# nothing\n",
		"objects/list.yaml":  "[a]\n",
	}
	open := func(path string) ([]byte, error) {
		if text, ok := files[path]; ok {
			return []byte(text), nil
		}
		return nil, errors.New(path + ": there is no such file")
	}
	for name, test := range map[string]struct {
		objects string
		open    Open
		problem string
	}{
		"two manifests": {"[{kind: LimitRange}, objects/two.yaml, {kind: RoleBinding}]", open, ""},
		"no file":       {"[objects/two.yaml, objects/a.yaml]", open, "croft.yaml:3: tenants.shop.objects[1]: objects/a.yaml: there is no such file"},
		"an empty file": {"[objects/empty.yaml]", open, "croft.yaml:3: tenants.shop.objects[0]: objects/empty.yaml contains no manifest"},
		"a list":        {"[objects/list.yaml]", open, "croft.yaml:3: tenants.shop.objects[0]: objects/list.yaml:1: a document must be a mapping"},
		"no path":       {`[""]`, open, "croft.yaml:3: tenants.shop.objects[0]: must be a manifest, or the path of a file"},
		"no files":      {"[objects/two.yaml]", nil, "croft.yaml:3: tenants.shop.objects[0]: files can only be read if croft.yaml is a file"},
	} {
		t.Run(name, func(t *testing.T) {
			d, problems := ParseWith("croft.yaml", []byte("tenants:\n  shop: {pool: apps,\n    objects: "+test.objects+"}\n"), test.open)
			if test.problem != "" {
				if len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), test.problem) {
					t.Errorf("got %v, want %s", problems, test.problem)
				}
				return
			}
			if len(problems) > 0 || len(d.Tenants) != 1 {
				t.Fatal(problems)
			}
			var found []string
			for _, o := range d.Tenants[0].Spec.Objects {
				found = append(found, string(o.Raw))
			}
			const want = `{"kind":"LimitRange"} {"kind":"ConfigMap","metadata":{"name":"a"}} {"kind":"ConfigMap","metadata":{"name":"b"}} {"kind":"RoleBinding"}`
			if got := strings.Join(found, " "); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}
