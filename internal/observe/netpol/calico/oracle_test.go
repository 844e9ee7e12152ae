package calico

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"croft.dev/croft/internal/test/sandbox"
)

// selectorsCompared is the number of random selectors in TestSelectorsAgree.
const selectorsCompared = 20_000

// TestSelectorsAgree passes random selectors, valid and damaged, to croft's parser and to
// Calico's own. Both must accept the same selectors and select the same labels. It runs with
// `make test-all`, which builds Calico's parser. TestSelectors has the examples of Calico's
// reference.
func TestSelectorsAgree(t *testing.T) {
	sandbox.Thorough(t)
	oracle, err := sandbox.FindTool("calico-selector")
	if err != nil {
		t.Fatal(err)
	}
	samples := []map[string]string{
		{}, {"a": "b"}, {"a": "bc"}, {"a": "cb", "b": "c"}, {"has": "in", "in": "b", "not": ""}, {"x/y.z-1_2": "b c", "a": ""}, {"all": "'", "b": `"`},
	}
	labels, err := json.Marshal(samples)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(14, 1))
	var texts []string
	var in bytes.Buffer
	for n := range selectorsCompared {
		text := generateSelector(random, 3)
		if n%2 == 1 {
			text = mangleText(random, text)
		}
		texts = append(texts, text)
		if err := json.NewEncoder(&in).Encode(text); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), oracle, string(labels))
	cmd.Stdin = &in
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	answers := json.NewDecoder(bytes.NewReader(out))
	valid, selecting := 0, 0
	for _, text := range texts {
		var want []bool
		if err := answers.Decode(&want); err != nil {
			t.Fatal(err)
		}
		s, err := Parse(text)
		if (err == nil) != (want != nil) {
			t.Errorf("%q: croft: %v; Calico takes it: %t", text, err, want != nil)
			continue
		}
		if err != nil {
			continue
		}
		valid++
		for i, labels := range samples {
			if got := s.Matches(labels); got != want[i] {
				t.Errorf("%q selects %v: %t, with Calico %t", text, labels, got, want[i])
			}
			if want[i] {
				selecting++
			}
		}
	}
	t.Logf("%d selectors, of which %d are valid; they select %d of %d samples", len(texts), valid, selecting, valid*len(samples))
	if valid < selectorsCompared/3 || valid > selectorsCompared*9/10 {
		t.Errorf("%d of %d selectors are valid; want many of both", valid, len(texts))
	}
}

// generateSelector returns a valid selector with at most depth levels of nesting.
func generateSelector(r *rand.Rand, depth int) string {
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	space := func() string { return one("", " ", "  ", "\t") }
	key := func() string { return one("a", "b", "x/y.z-1_2", "in", "not", "has", "all", "missing") }
	value := func() string { return one(`'b'`, `"b"`, `'bc'`, `''`, `"c"`, `'"'`, `"'"`, `'b c'`, `"in"`) }
	set := func() string {
		var values []string
		for range r.IntN(4) {
			values = append(values, space()+value()+space())
		}
		return "{" + strings.Join(values, ",") + one("", "", "", space()) + "}"
	}
	if depth > 0 && r.IntN(2) == 0 {
		left, right := generateSelector(r, depth-1), generateSelector(r, depth-1)
		switch r.IntN(4) {
		case 0:
			return "!" + space() + "(" + left + ")"
		case 1:
			return "(" + space() + left + space() + ")" + space() + one("&&", "||") + space() + right
		default:
			return left + space() + one("&&", "||") + space() + right
		}
	}
	switch r.IntN(6) {
	case 0:
		return one("", "!", "!! ") + "has(" + space() + key() + space() + ")"
	case 1:
		return one("all()", "all( )", "!all()")
	case 2:
		return key() + " " + one("in", "not in", "notin") + space() + set()
	case 3:
		return key() + " " + one("contains", "starts with", "startswith", "ends with", "endswith") + space() + value()
	default:
		return key() + space() + one("==", "!=") + space() + value()
	}
}

// mangleText deletes or doubles a character of a text, or replaces it by another one, or inserts
// another one before it, once or twice.
func mangleText(r *rand.Rand, text string) string {
	for range 1 + r.IntN(2) {
		if text == "" {
			return text
		}
		at := r.IntN(len(text))
		replacement := []string{"", text[at:at+1] + text[at:at+1], "(", ")", "'", " ", "!", "=", "&", ",", "{", "a", "\n", "$"}
		text = text[:at] + replacement[r.IntN(len(replacement))] + text[at+r.IntN(2):]
	}
	return text
}
