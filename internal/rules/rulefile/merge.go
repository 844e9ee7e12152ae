package rulefile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Scene has the values of words such as $(own), by the word, and the objects that a case names as
// its base. A case with an empty word, or with a base that is nil, is not an attack.
type Scene struct {
	Words map[string]string
	Bases map[string]client.Object
}

// ReplaceWords replaces the words in a text.
func (s Scene) ReplaceWords(text string) string { return s.newReplacer(0).Replace(text) }

func (s Scene) newReplacer(index int) *strings.Replacer {
	words := []string{"INDEX", strconv.Itoa(index)}
	for word, value := range s.Words {
		words = append(words, "$("+word+")", value)
	}
	return strings.NewReplacer(words...)
}

// BuildObjects returns the object of a case's request, and the old object of an update. The objects
// of an attack or mirror are named like it, unless the case sets a name.
func (f *Cases) BuildObjects(c Case, s Scene) (object, old *unstructured.Unstructured, err error) {
	base, err := f.findBase(c, s)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: base: %w", c.Name, err)
	}
	if object, err = mergeObject(base, c.Set, s); err != nil {
		return nil, nil, fmt.Errorf("%s: set: %w", c.Name, err)
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(s.Words["own"])
	}
	_, named, _ := unstructured.NestedString(c.Set, "metadata", "name")
	if name := cmp.Or(c.Attack, c.Mirror); name != "" && !named {
		object.SetName("croft-" + name)
	}
	if c.Old == nil {
		return object, nil, nil
	}
	if old, err = mergeObject(base, c.Old, s); err != nil {
		return nil, nil, fmt.Errorf("%s: old: %w", c.Name, err)
	}
	old.SetNamespace(object.GetNamespace())
	if c.Attack != "" || c.Mirror != "" {
		old.SetName(object.GetName())
	}
	return object, old, nil
}

// findBase returns the object that a case modifies.
func (f *Cases) findBase(c Case, s Scene) (map[string]any, error) {
	switch base, known := s.Bases[c.Base]; {
	case known:
		return runtime.DefaultUnstructuredConverter.ToUnstructured(base)
	case c.Base != "":
		return nil, fmt.Errorf("%q is unknown", c.Base)
	case c.Object != nil:
		return c.Object, nil
	default:
		return f.Object, nil
	}
}

func mergeObject(base, patch map[string]any, s Scene) (*unstructured.Unstructured, error) {
	content, err := MergePatch(base, patch, s)
	return &unstructured.Unstructured{Object: content}, err
}

// MergePatch returns a copy of base with a patch merged over it.
func MergePatch(base, patch map[string]any, s Scene) (map[string]any, error) {
	document, err := marshalExpanded(base, s)
	if err != nil {
		return nil, err
	}
	if patch, err = mergeItems(base, patch, s); err != nil {
		return nil, err
	}
	over, err := marshalExpanded(patch, s)
	if err != nil {
		return nil, err
	}
	if document, err = jsonpatch.MergePatch(document, over); err != nil {
		return nil, err
	}
	var content map[string]any
	// Integers stay integers, as in an API server.
	err = utiljson.Unmarshal(document, &content)
	return content, err
}

// mergeItems replaces each {$each: PATCH} by the list in the same place of base, with the patch merged
// over each of its items.
func mergeItems(base, patch map[string]any, s Scene) (map[string]any, error) {
	out := make(map[string]any, len(patch))
	for key, value := range patch {
		out[key] = value
		inside, isMap := value.(map[string]any)
		if !isMap {
			continue
		}
		var err error
		each, isEach := inside["$each"].(map[string]any)
		switch below := base[key].(type) {
		case []any:
			if !isEach {
				continue
			}
			list := make([]any, len(below))
			for i := range below {
				item, _ := below[i].(map[string]any)
				if list[i], err = MergePatch(item, each, s); err != nil {
					return nil, err
				}
			}
			out[key] = list
		case map[string]any:
			if out[key], err = mergeItems(below, inside, s); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// marshalExpanded treats nil as an empty map: null would remove the field that it is merged over.
func marshalExpanded(content map[string]any, s Scene) ([]byte, error) {
	if content == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(s.expand(content, 0))
}

// expand replaces $repeat, $text and words.
func (s Scene) expand(v any, index int) any {
	switch v := v.(type) {
	case string:
		return s.newReplacer(index).Replace(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = s.expand(v[i], index)
		}
		return out
	case map[string]any:
		if n, ok := readCount(v["$repeat"]); ok {
			out := make([]any, n)
			for i := range out {
				out[i] = s.expand(v["of"], i)
			}
			return out
		}
		if n, ok := readCount(v["$text"]); ok {
			return strings.Repeat(fmt.Sprint(v["of"]), n)
		}
		out := make(map[string]any, len(v))
		for key, value := range v {
			if strings.Contains(key, "$(") {
				key = s.ReplaceWords(key)
			}
			out[key] = s.expand(value, index)
		}
		return out
	}
	return v
}

func readCount(v any) (int, bool) {
	switch n := v.(type) {
	case int64:
		return int(n), true
	case float64:
		return int(n), true
	}
	return 0, false
}
