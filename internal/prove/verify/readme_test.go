package verify_test

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/rules/attack"
)

// TestReadme fails if the README's numbers of attacks and mirrors are too high, or more than a
// fifth too low.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	scratch, err := verify.NewScratch(newPlatform("ingress"))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[attack.Kind]int{}
	for _, a := range scratch.Attacks() {
		counts[a.Kind]++
	}
	for kind, pattern := range map[attack.Kind]string{attack.Breach: `more than (\d+) attacks`, attack.Mirror: `more than (\d+) mirrors`} {
		match := regexp.MustCompile(pattern).FindSubmatch(readme)
		if match == nil {
			t.Errorf("the README does not have %q", pattern)
			continue
		}
		if stated, _ := strconv.Atoi(string(match[1])); stated >= counts[kind] || stated*5 < counts[kind]*4 {
			t.Errorf("the README has more than %d of kind %s, and there are %d", stated, kind, counts[kind])
		}
	}
}
