package catalog_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"croft.dev/croft/internal/diagnose/catalog"
)

// TestFindMatchesEachText fails if a text of the catalogue, which is verbatim from its
// component, does not match its own row, or matches another one.
func TestFindMatchesEachText(t *testing.T) {
	for _, row := range catalog.Rows() {
		for _, text := range row.Texts {
			found := catalog.FindMatches(text)
			if len(found) != 1 || found[0].ID != row.ID {
				t.Errorf("%s: %q is found to be %v", row.ID, text, listIDs(found))
			}
		}
	}
}

func TestRowsAreComplete(t *testing.T) {
	seen := map[string]bool{}
	word := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	for _, row := range catalog.Rows() {
		switch {
		case !word.MatchString(row.ID) || seen[row.ID]:
			t.Errorf("%q is not a valid name, or not unique", row.ID)
		case row.Symptom == "" || row.Cause == "" || row.Fix == "" || row.Who == "" || row.Link == "":
			t.Errorf("%s: a field is empty: %+v", row.ID, row)
		case row.NeedsSeveralObjects() != (len(row.Texts) == 0):
			t.Errorf("%s: a signature without a text that shows it, or the other way round", row.ID)
		}
		seen[row.ID] = true
		if got := catalog.FindRow(row.ID); got == nil || got.ID != row.ID {
			t.Errorf("FindRow(%q) does not find the row", row.ID)
		}
	}
	if catalog.FindRow("unknown") != nil {
		t.Error("FindRow found a row that does not exist")
	}
}

// TestFindMatchesSeveral fails if findings are not in the order of their symptoms in the text,
// or if a healthy text matches.
func TestFindMatchesSeveral(t *testing.T) {
	got := listIDs(catalog.FindMatches(`did not tolerate taint (taint=a=b:NoSchedule); incompatible requirements, label "c" does not have known values`))
	if strings.Join(got, " ") != "taint-not-tolerated label-unknown" {
		t.Errorf("found %v", got)
	}
	for _, fine := range []string{"", "Successfully assigned tenant-a/web to node-1", catalog.FormatCondition("Ready", "True", "Ready", "")} {
		if got := catalog.FindMatches(fine); len(got) > 0 {
			t.Errorf("%q is found to be %v", fine, listIDs(got))
		}
	}
}

// The message of a real account about the launch of its first node.
const (
	encoded = "u3BZrZUSziC6V7RjV0uPSiwFLaqJMFHwZIuPvJPp-p7sYQMP0EUtzbldDO7xSZD5XrdTLdFz_zxjzNhOPtnmenOgb"
	refused = `2022-03-15T14:59:22.984Z ERROR controller.provisioning Could not launch node, launching instances, getting launch template configs, getting launch templates, creating launch template, UnauthorizedOperation: You are not authorized to perform this operation. Encoded authorization failure message: ` + encoded
	byNode  = `{"allowed":false,"explicitDeny":false,"matchedStatements":{"items":[]},"failures":{"items":[]},"context":{"principal":{"id":"AROAZUFR7JW2VHL4MT3MS:i-0fa071d72e68e7a33","arn":"arn:aws:sts::123456789012:assumed-role/eks-node-role-dev/i-0fa071d72e68e7a33"},"action":"ec2:CreateLaunchTemplate","resource":"arn:aws:ec2:ap-northeast-2:123456789012:launch-template/*","conditions":{"items":[]}}}`
)

func TestDecoded(t *testing.T) {
	byController := strings.ReplaceAll(byNode, "eks-node-role-dev/i-0fa071d72e68e7a33", "KarpenterController/1700000000")
	decodeTo := func(text string) catalog.Decode {
		return func(_ context.Context, message string) (string, error) {
			if message != encoded {
				t.Errorf("asked to decode %q", message)
			}
			return text, nil
		}
	}
	for name, c := range map[string]struct {
		text   string
		decode catalog.Decode
		want   []string
	}{
		"by a node's role": {refused, decodeTo(byNode), []string{"that is the role eks-node-role-dev of the node i-0fa071d72e68e7a33", "ec2:CreateLaunchTemplate", "IRSA", "Pod Identity"}},
		"explicitly":       {refused, decodeTo(strings.Replace(byController, `"explicitDeny":false`, `"explicitDeny":true`, 1)), []string{"denies it explicitly", "service control policy", "tags"}},
		"not allowed":      {refused, decodeTo(byController), []string{"no policy allows it", "add ec2:CreateLaunchTemplate on arn:aws:ec2:ap-northeast-2:123456789012:launch-template/* to the policy of the role KarpenterController"}},
		"without rights": {refused, func(context.Context, string) (string, error) { return "", errors.New("no\ncredentials") },
			[]string{"could not be decoded here: no credentials\naws sts decode-authorization-message --encoded-message " + encoded}},
		"without a decoder": {refused, nil, []string{"aws sts decode-authorization-message --encoded-message " + encoded}},
		"nonsense":          {refused, decodeTo("{}"), []string{"names no action", "aws sts decode-authorization-message"}},
		"not JSON":          {refused, decodeTo("<html>"), []string{"not JSON", "aws sts decode-authorization-message"}},
		"cut":               {refused + "...", decodeTo(""), []string{"truncated here", "croft why -f -"}},
		"not at all":        {"UnauthorizedOperation: no", decodeTo(""), []string{"decode the message"}},
	} {
		t.Run(name, func(t *testing.T) {
			found := catalog.FindMatches(c.text)
			if len(found) != 1 || found[0].ID != catalog.UnauthorizedID {
				t.Fatalf("found %v", listIDs(found))
			}
			f := catalog.DecodeFinding(t.Context(), found[0], c.decode)
			for _, want := range c.want {
				if !strings.Contains(f.Cause+"\n"+f.Fix+"\n"+f.Run, want) {
					t.Errorf("want %q in:\n%s\n%s", want, f.Cause, f.Fix)
				}
			}
		})
	}
}

func FuzzMatch(f *testing.F) {
	for _, row := range catalog.Rows() {
		for _, text := range row.Texts {
			f.Add(text)
		}
	}
	f.Add(byNode)
	f.Fuzz(func(t *testing.T, text string) {
		for _, finding := range catalog.FindMatches(text) {
			catalog.DecodeFinding(context.Background(), finding, func(context.Context, string) (string, error) { return text, nil })
		}
		if d, err := catalog.ParseDenial(text); err == nil {
			if cause, fix := d.Explain(); cause == "" || fix == "" {
				t.Errorf("%+v has no cause or no fix", d)
			}
		}
	})
}

func listIDs(found []catalog.Finding) []string {
	var all []string
	for _, f := range found {
		all = append(all, f.ID)
	}
	return all
}

// TestLongTexts fails if the whole of a long text is searched: each megabyte takes seconds.
func TestLongTexts(t *testing.T) {
	symptom := catalog.Rows()[0].Texts[0]
	if got := catalog.FindMatches(symptom + strings.Repeat(" x", 1<<20)); len(got) == 0 {
		t.Error("the beginning of a long text is not searched")
	}
	if got := catalog.FindMatches(strings.Repeat("x ", 1<<20) + symptom); len(got) > 0 {
		t.Errorf("the end of a long text is searched: %v", listIDs(got))
	}
}
