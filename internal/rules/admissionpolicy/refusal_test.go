package admissionpolicy

import "testing"

func TestParseRefusal(t *testing.T) {
	for name, test := range map[string]struct {
		text, message string
		want          Refusal
		isNone        bool
	}{
		"a rule": {
			text:    "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'croft-pods' with binding 'croft-pods' denied request: [tolerations] spec.tolerations: no\nand more",
			want:    Refusal{"croft-pods", "tolerations", "spec.tolerations: no\nand more"},
			message: "[tolerations] spec.tolerations: no\nand more",
		},
		"a policy without rules": {
			text:    "ValidatingAdmissionPolicy 'others' with binding 'b' denied request: [Not] a rule",
			want:    Refusal{"others", "", "[Not] a rule"},
			message: "[Not] a rule",
		},
		"a webhook": {text: `admission webhook "a" denied the request: [b] no`, isNone: true},
		"a warning": {text: "Validation failed for ValidatingAdmissionPolicy 'a' with binding 'a': [b] no", isNone: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, is := ParseRefusal(test.text)
			if got != test.want || is == test.isNone {
				t.Errorf("got %q, %v", got, is)
			}
			if got.FormatMessage() != test.message {
				t.Errorf("the policy wrote %q", got.FormatMessage())
			}
		})
	}
}

func TestParseWarning(t *testing.T) {
	const warning = "Validation failed for ValidatingAdmissionPolicy 'croft-pod-warnings' with binding 'croft-pod-warnings': "
	for text, want := range map[string]Refusal{
		warning + "[image-reference] write a digest": {"croft-pod-warnings", "image-reference", "write a digest"},
		warning + "write a digest":                   {"croft-pod-warnings", "", "write a digest"},
		"a pod's text: " + warning + "[a] b":         {},
		"unknown field \"spec.a\"":                   {},
	} {
		if got, is := ParseWarning(text); got != want || is != (want.Policy != "") {
			t.Errorf("%s: got %q, %v", text, got, is)
		}
	}
}
