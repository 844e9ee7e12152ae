package manifest

import (
	"unicode/utf8"
)

// Open reads a file that croft.yaml names, relative to croft.yaml.
type Open func(path string) ([]byte, error)

// userDataFile is a key of the compact form only: objects are sent to an API server, which has
// no such files.
const userDataFile = "userDataFile"

// loadUserData replaces userDataFile by userData. The check of the object reports errors of the
// field itself.
func (r *reader) loadUserData(spec any) []issue {
	class := getMap(getMap(spec, "nodeClass"), "aws")
	file, ok := class[userDataFile]
	if !ok {
		return nil
	}
	delete(class, userDataFile)
	wrong := func(message string) []issue { return []issue{{"spec.nodeClass.aws." + userDataFile, message}} }
	path, ok := file.(string)
	switch _, twice := class["userData"]; {
	case twice:
		return wrong("set userData or userDataFile, not both")
	case !ok || path == "":
		return wrong("must be the path of a file, relative to this one")
	case r.open == nil:
		return wrong("can only be read if croft.yaml is a file; write the text itself as userData")
	}
	text, err := r.open(path)
	switch {
	case err != nil:
		return wrong(err.Error())
	case len(text) == 0 || !utf8.Valid(text):
		return wrong(path + " is empty, or not a text file; name another file")
	}
	class["userData"] = string(text)
	return nil
}

func getMap(around any, key string) map[string]any {
	m, _ := around.(map[string]any)
	inner, _ := m[key].(map[string]any)
	return inner
}
