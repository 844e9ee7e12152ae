package policy

import (
	"fmt"
	"strconv"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// The parts of the rules on the sizes of pods and of other objects.

// growth is the number of bytes by which an object may still grow if it was too large before
// croft was installed or a bound was lowered. It is enough for a label and its entry in
// metadata.managedFields.
const growth = 4 << 10

// readText returns an expression for an object as text. The text's length differs by a few
// percent from the length of the object's JSON. CEL can process a whole object only by
// formatting it as text.
func readText(object string) string { return replaceWords(`"%s".format([OBJECT])`, "OBJECT", object) }

// countBytes returns an expression for the number of bytes of a text. CEL counts characters of
// up to four bytes each, so bytes are counted only if the difference matters for the bound.
func countBytes(text, most string) string {
	return replaceWords(`(TEXT.size() * 4 <= MOST || TEXT.size() > MOST ? TEXT.size() : bytes(TEXT).size())`,
		"TEXT", text, "MOST", most)
}

// matchHardlyGrown returns the condition that an object was too large before and has hardly grown:
// it can still be labelled, scaled and deleted. Growth is counted in characters, which is
// cheaper, so such an object may gain bytes if longer characters replace others.
func matchHardlyGrown(text, before, most string) string {
	return replaceWords(`BYTES > MOST && TEXT.size() <= BEFORE.size() + `+strconv.Itoa(growth),
		"BYTES", countBytes(before, most), "MOST", most, "TEXT", text, "BEFORE", before)
}

// readBound returns an expression for the namespace's bound for a kind of objects, in bytes.
func readBound(field string) (string, error) {
	bounds := map[string]struct {
		annotation string
		otherwise  int
	}{
		"maxObjectBytes":      {v1alpha1.MaxObjectBytesAnnotation, estate.MaxObjectBytes},
		"maxHelmReleaseBytes": {v1alpha1.MaxHelmReleaseBytesAnnotation, estate.MaxObjectBytes},
		"maxOtherObjectBytes": {v1alpha1.MaxOtherObjectBytesAnnotation, estate.MaxOtherObjectBytes},
	}
	bound, known := bounds[field]
	if !known {
		return "", fmt.Errorf("there is no bound %s", field)
	}
	return replaceWords(`(has(namespaceObject.metadata.annotations) && KEY in namespaceObject.metadata.annotations
		? int(namespaceObject.metadata.annotations[KEY]) : OTHERWISE)`,
		"KEY", admissionpolicy.Quote(bound.annotation), "OTHERWISE", strconv.Itoa(bound.otherwise)), nil
}
