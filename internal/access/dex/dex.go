// Package dex writes the configuration with which Dex (dexidp.io) serves croft login. It
// does no I/O.
package dex

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"strings"
	"text/template"

	"croft.dev/croft/internal/declare/estate"
)

//go:embed config.yaml.tmpl
var text string

// Strings are written as JSON, which is also valid YAML, so that no character in a name has
// a special meaning in the file or ends a comment.
var config = template.Must(template.New("config.yaml").Funcs(template.FuncMap{
	"json": func(value string) (string, error) {
		quoted, err := json.Marshal(value)
		return string(quoted), err
	},
}).Parse(text))

// Options are the settings of Dex that are not in an estate.
type Options struct {
	// Issuer is Dex's URL, as in the iss claim of its tokens.
	Issuer string
	// ClientID is the ID of croft login's client.
	ClientID string
}

// Config returns Dex's configuration in YAML. It contains no connector: an example in a
// comment names the groups that users' tokens need for the roles of the estate.
func Config(e *estate.Estate, o Options) ([]byte, error) {
	prefix := e.Platform.GroupPrefix
	var groups []string
	for _, group := range e.Platform.Groups {
		// A group without the prefix cannot come from Dex.
		if name, ok := strings.CutPrefix(group, prefix); ok {
			groups = append(groups, name)
		}
	}
	var written bytes.Buffer
	err := config.Execute(&written, struct {
		Options
		ClientName, Callback, Prefix string
		Groups                       []string
	}{
		Options: o, ClientName: "croft on " + e.Platform.ClusterName,
		Callback: strings.TrimSuffix(o.Issuer, "/") + "/callback", Prefix: prefix, Groups: groups,
	})
	return written.Bytes(), err
}
