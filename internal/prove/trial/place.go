package trial

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"croft.dev/croft/internal/walls/wall/policy"
)

// Messages of rules begin with the names of the fields, such as
//
//	[hosts] spec.rules[].host: www.example.org is not among …
//
// with [] for any entry of a list. The values in the message determine the entry.

// fieldsOf matches the fields at the beginning of a message.
var fieldsOf = regexp.MustCompile(`^[a-z][A-Za-z0-9]*(?:\.[A-Za-z0-9]+|\[\])*(?:, [a-z][A-Za-z0-9]*(?:\.[A-Za-z0-9]+|\[\])*)*: `)

// unnamed are the fields of rules whose messages do not begin with fields.
var unnamed = map[string][]string{
	policy.RegistryRule: {"spec.containers[].image", "spec.initContainers[].image", "spec.volumes[].image.reference"},
}

// ofPods matches the beginning of messages about the pods of a template.
var ofPods = regexp.MustCompile(`^its pods will (?:be refused|run elsewhere): `)

// locateReason returns the line of a reason's field in the manifest. The object is at a path of the
// manifest: the pod of a Deployment at spec.template.
func (m Manifest) locateReason(r Reason, at []string) int {
	message := strings.TrimPrefix(r.Message, "["+r.Rule+"] ")
	if match := ofPods.FindString(message); match != "" {
		message, at = message[len(match):], findTemplatePath(m.Object)
	} else if strings.HasPrefix(message, wouldViolate) {
		at = findTemplatePath(m.Object)
	}
	content := getValue(m.Object.Object, at)
	if r.Source == podSecurity {
		return m.findLine(slices.Concat(at, findSecurityField(content, message))...)
	}
	fields := unnamed[r.Rule]
	if match := fieldsOf.FindString(message); match != "" {
		fields = strings.Split(strings.TrimSuffix(match, ": "), ", ")
	}
	best := fieldMatch{how: unwritten}
	for _, field := range fields {
		path := strings.Split(strings.ReplaceAll(field, "[]", ".[]"), ".")
		if f := findField(content, path, message); f.isBetter(best) {
			best = f
		}
	}
	return m.findLine(slices.Concat(at, best.path)...)
}

// fieldMatch is a field, or its nearest existing parent.
type fieldMatch struct {
	path []string
	how  certainty
	// at is the position of the field's value in the message.
	at int
}

// certainty is the certainty that a field is the one that the message names.
type certainty int

const (
	// unwritten means that neither the field nor its parent is written.
	unwritten certainty = iota
	// present means that the field is written, but the message may be about another.
	present
	// lacking means that an entry of a list lacks the field.
	lacking
	// mentioned means that the message contains the field's value. Of several, the first in the
	// message is used, since messages begin with the fault and end with the allowed values.
	mentioned
)

func (f fieldMatch) isBetter(than fieldMatch) bool {
	return f.how > than.how || f.how == mentioned && than.how == mentioned && f.at < than.at || than.path == nil && f.how == than.how
}

func findField(content any, path []string, message string) fieldMatch {
	if len(path) == 0 {
		return findMentioned(content, message)
	}
	best := fieldMatch{how: unwritten}
	if step := path[0]; step != "[]" {
		if object, ok := content.(map[string]any); ok && object[step] != nil {
			best = findField(object[step], path[1:], message)
			best.path = append([]string{step}, best.path...)
		}
		return best
	}
	list, _ := content.([]any)
	for i, entry := range list {
		f := findField(entry, path[1:], message)
		f.path = append([]string{strconv.Itoa(i)}, f.path...)
		if f.how == unwritten {
			f.how = lacking
		}
		if f.isBetter(best) {
			best = f
		}
	}
	return best
}

// findMentioned returns the key or the entry that a message contains.
func findMentioned(content any, message string) fieldMatch {
	best := fieldMatch{how: present}
	consider := func(step string, f fieldMatch) {
		if f.how == mentioned && f.isBetter(best) {
			f.path = []string{step}
			best = f
		}
	}
	switch in := content.(type) {
	case map[string]any:
		for key, value := range in {
			consider(key, findMention(key, message))
			consider(key, findMentioned(value, message))
		}
	case []any:
		for i, entry := range in {
			consider(strconv.Itoa(i), findMentioned(entry, message))
		}
	default:
		return findMention(fmt.Sprint(in), message)
	}
	return best
}

// findMention searches a message for a value as a separate word.
func findMention(value, message string) fieldMatch {
	for from := 0; value != ""; {
		i := strings.Index(message[from:], value)
		if i < 0 {
			break
		}
		start, end := from+i, from+i+len(value)
		if (start == 0 || !isWordCharacter(message[start-1])) && (end == len(message) || !isWordCharacter(message[end]) || endsSentence(message[end:])) {
			return fieldMatch{how: mentioned, at: start}
		}
		from = start + 1
	}
	return fieldMatch{how: present}
}

func isWordCharacter(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte("-._/", b) >= 0
}

// endsSentence reports whether the rest of a message begins with the full stop of a sentence.
func endsSentence(rest string) bool { return strings.HasPrefix(rest, ". ") || rest == "." }

// wouldViolate is in the warning of Pod Security about the pods of a template.
const wouldViolate = "would violate PodSecurity"

// podSecurity is the Source of refusals that name containers and volumes, and fields in them.
const podSecurity = "PodSecurity"

var (
	namedContainer = regexp.MustCompile(`containers? "([^"]+)"`)
	namedVolume    = regexp.MustCompile(`volumes? "([^"]+)"`)
	namedField     = regexp.MustCompile(`\((host[A-Za-z]+)=`)
	setField       = regexp.MustCompile(` set ([A-Za-z.]+)`)
)

// findSecurityField returns the first field that Pod Security names: of a container or a volume by
// its name, or of the pod.
func findSecurityField(content any, message string) []string {
	if match := namedField.FindStringSubmatch(message); match != nil {
		return []string{"spec", match[1]}
	}
	for _, named := range []struct {
		by    *regexp.Regexp
		lists []string
	}{{namedContainer, []string{"containers", "initContainers", "ephemeralContainers"}}, {namedVolume, []string{"volumes"}}} {
		match := named.by.FindStringSubmatch(message)
		if match == nil {
			continue
		}
		for _, list := range named.lists {
			entries, _ := getValue(content, []string{"spec", list}).([]any)
			for i, entry := range entries {
				if e, ok := entry.(map[string]any); ok && e["name"] == match[1] {
					path := []string{"spec", list, strconv.Itoa(i)}
					if set := setField.FindStringSubmatch(message); set != nil && named.by == namedContainer {
						path = append(path, strings.Split(set[1], ".")...)
					}
					return path
				}
			}
		}
	}
	return []string{"spec"}
}

// getValue returns the value at a path, or nil if there is none.
func getValue(content any, path []string) any {
	for _, step := range path {
		switch at := content.(type) {
		case map[string]any:
			content = at[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(at) {
				return nil
			}
			content = at[i]
		default:
			return nil
		}
	}
	return content
}
