package supportbundle

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/api/v1alpha1"
)

// removed replaces removed text.
const removed = "REMOVED"

// secretive are fields whose values may be credentials, at any place in an object.
var secretive = map[string]bool{
	"userData": true, "caBundle": true, "token": true, "password": true, "encryptedToken": true, "ciphertext": true,
}

// secretText matches credentials in logs and messages: tokens, access keys of AWS,
// passwords in URLs, and the text after "password=" and the like.
var secretText = regexp.MustCompile(`(?i)eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*` +
	`|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b` +
	`|\bBearer\s+[^\s"']+` +
	`|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*-----END [A-Z ]*PRIVATE KEY-----` +
	`|://[^\s/@:]+:[^\s/@]+@` +
	`|\b(?:password|passwd|secret|token|api[_-]?key)["']?\s*[=:]\s*["']?[^\s"',;}]+`)

// scrubText removes credentials from a text, also without redaction of names.
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

// scrubObject removes possible credentials and irrelevant data from an object: annotations of
// others (such as the last applied configuration), managed fields, values of environment
// variables, user data. It removes the spec of policies, which croft's release defines.
func scrubObject(o *unstructured.Unstructured) {
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
