package supportbundle

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/api/v1alpha1"
)

// removed stands where something was taken out.
const removed = "REMOVED"

// secretive are fields whose values may hold credentials, wherever they are.
var secretive = map[string]bool{
	"userData": true, "caBundle": true, "token": true, "password": true, "encryptedToken": true, "ciphertext": true,
}

// secretText are credentials as they may stand in a log or a message: tokens, keys of AWS,
// passwords in URLs, and what somebody writes behind "password=".
var secretText = regexp.MustCompile(`(?i)eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*` +
	`|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b` +
	`|\bBearer\s+[^\s"']+` +
	`|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*-----END [A-Z ]*PRIVATE KEY-----` +
	`|://[^\s/@:]+:[^\s/@]+@` +
	`|\b(?:password|passwd|secret|token|api[_-]?key)["']?\s*[=:]\s*["']?[^\s"',;}]+`)

// scrubText takes credentials out of a text, whether or not names are redacted.
func scrubText(text string) string {
	return secretText.ReplaceAllStringFunc(text, func(found string) string {
		switch i := strings.IndexAny(found, "=:"); {
		case strings.HasPrefix(found, "://"):
			return "://" + removed + "@"
		case i > 0 && !strings.HasPrefix(found, "-----"):
			return found[:i+1] + removed
		default:
			return removed
		}
	})
}

// scrub takes out of an object what may hold credentials, and what says nothing: annotations
// of others (the last applied configuration is one), field managers, values of environment
// variables, user data. Of policies only the status stays: their specification is croft's.
func scrub(o *unstructured.Unstructured) {
	o.SetManagedFields(nil)
	annotations := map[string]string{}
	for name, value := range o.GetAnnotations() {
		if strings.HasPrefix(name, v1alpha1.GroupVersion.Group+"/") {
			annotations[name] = value
		}
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	o.SetAnnotations(annotations)
	if strings.HasSuffix(o.GetKind(), "AdmissionPolicy") {
		delete(o.Object, "spec")
	}
	o.Object, _ = scrubValue("", o.Object).(map[string]any)
}

func scrubValue(field string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			if _, ok := inner.(string); ok && (secretive[name] || name == "value" && field == "env") {
				v[name] = removed
				continue
			}
			v[name] = scrubValue(name, inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = scrubValue(field, inner)
		}
	case string:
		return scrubText(v)
	}
	return value
}
