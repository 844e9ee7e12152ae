package denials

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// newLine returns an event of an audit log.
func newLine(namespace, user, time, message, more string) string {
	return `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/` + namespace + `/pods",` +
		`"user":{"username":"` + user + `"},"objectRef":{"resource":"pods","namespace":"` + namespace + `"},"responseStatus":{"code":403,"message":"` + message + `"},` +
		`"requestReceivedTimestamp":"2026-11-27T` + time + `.000000Z"` + more + "}\n"
}

const (
	tolerations = `pods \"a\" is forbidden: ValidatingAdmissionPolicy 'croft-pods' with binding 'croft-pods' denied request: [tolerations] spec.tolerations: no`
	violation   = `,"annotations":{"validation.policy.admission.k8s.io/validation_failure":"[{\"message\":\"[image-reference] would be refused\",\"policy\":\"croft-pod-trials\",\"expressionIndex\":2}]"}`
)

func TestLog(t *testing.T) {
	at := func(clock string) time.Time {
		parsed, err := time.Parse(time.TimeOnly, clock)
		if err != nil {
			t.Fatal(err)
		}
		return time.Date(2026, 11, 27, parsed.Hour(), parsed.Minute(), 0, 0, time.UTC)
	}
	one := func(namespace, rule, message string) Denial {
		return Denial{Namespace: namespace, Rule: rule, Requests: 1, First: at("10:00:00"), Last: at("10:00:00"), Users: []string{"jane"}, Message: message}
	}
	for name, c := range map[string]struct {
		log     string
		options Options
		want    []Denial
		invalid int
	}{
		"a rule": {log: newLine("shop", "jane", "10:00:00", tolerations, ""), want: []Denial{one("shop", "croft-pods/tolerations", "spec.tolerations: no")}},
		"a policy without rules": {
			log:  newLine("shop", "jane", "10:00:00", "ValidatingAdmissionPolicy 'others' with binding 'b' denied request: no", ""),
			want: []Denial{one("shop", "others", "no")},
		},
		"a constraint": {
			log:  newLine("shop", "jane", "10:00:00", `admission webhook \"validation.gatekeeper.sh\" denied the request: [croft-services] [service-type] no`, ""),
			want: []Denial{one("shop", "croft-services/service-type", "no")},
		},
		"Pod Security": {
			log:  newLine("shop", "jane", "10:00:00", `pods \"a\" is forbidden: violates PodSecurity \"restricted:latest\": x`, ""),
			want: []Denial{one("shop", "PodSecurity", `pods "a" is forbidden: violates PodSecurity "restricted:latest": x`)},
		},
		"a quota": {
			log:  newLine("shop", "jane", "10:00:00", `pods \"a\" is forbidden: exceeded quota: croft, requested: x`, ""),
			want: []Denial{one("shop", "ResourceQuota", `pods "a" is forbidden: exceeded quota: croft, requested: x`)},
		},
		"a limit": {
			log:  newLine("shop", "jane", "10:00:00", `pods \"a\" is forbidden: maximum cpu usage per Container is 4`, ""),
			want: []Denial{one("shop", "LimitRange", `pods "a" is forbidden: maximum cpu usage per Container is 4`)},
		},
		"missing rights": {log: newLine("shop", "jane", "10:00:00", `pods is forbidden: User \"jane\" cannot list resource \"pods\"`, "")},
		"several requests": {
			log: newLine("shop", "jane", "11:00:00", tolerations, "") + newLine("shop", "bot", "10:00:00", tolerations, `,"impersonatedUser":{"username":"ann"}`) +
				newLine("shop", "jane", "10:30:00", strings.Replace(tolerations, "no", "never", 1), "") + newLine("bank", "jane", "10:00:00", tolerations, ""),
			want: []Denial{one("bank", "croft-pods/tolerations", "spec.tolerations: no"), {
				Namespace: "shop", Rule: "croft-pods/tolerations", Requests: 3, First: at("10:00:00"), Last: at("11:00:00"), Users: []string{"ann", "jane"}, Message: "spec.tolerations: no",
			}},
		},
		"the most frequent one first": {
			log: newLine("shop", "jane", "10:00:00", `exceeds: exceeded quota: croft`, "") + newLine("shop", "jane", "10:00:00", tolerations, "") + newLine("shop", "jane", "10:00:00", tolerations, ""),
			want: []Denial{
				{Namespace: "shop", Rule: "croft-pods/tolerations", Requests: 2, First: at("10:00:00"), Last: at("10:00:00"), Users: []string{"jane"}, Message: "spec.tolerations: no"},
				one("shop", "ResourceQuota", "exceeds: exceeded quota: croft"),
			},
		},
		"a dry run":         {log: strings.Replace(newLine("shop", "jane", "10:00:00", tolerations, ""), "/pods\"", "/pods?dryRun=All\"", 1)},
		"an earlier stage":  {log: strings.Replace(newLine("shop", "jane", "10:00:00", tolerations, ""), "ResponseComplete", "ResponseStarted", 1)},
		"another namespace": {log: newLine("shop", "jane", "10:00:00", tolerations, ""), options: Options{Namespace: "bank"}},
		"an earlier time":   {log: newLine("shop", "jane", "10:00:00", tolerations, ""), options: Options{Since: at("10:01:00")}},
		"the same time":     {log: newLine("shop", "jane", "10:00:00", tolerations, ""), options: Options{Since: at("10:00:00"), Namespace: "shop"}, want: []Denial{one("shop", "croft-pods/tolerations", "spec.tolerations: no")}},
		"an incomplete line": {
			log: `","requestURI":"/denied"}` + "\n\n" + newLine("shop", "jane", "10:00:00", tolerations, "") + `{"denied": `, invalid: 2,
			want: []Denial{one("shop", "croft-pods/tolerations", "spec.tolerations: no")},
		},
		"another log":            {log: `{"msg":"denied"}`, invalid: 1},
		"a violation on trial":   {log: newLine("shop", "jane", "10:00:00", "", violation), options: Options{Trial: true}, want: []Denial{one("shop", "croft-pod-trials/image-reference", "would be refused")}},
		"a violation, not asked": {log: newLine("shop", "jane", "10:00:00", "", violation)},
		"a refusal, not asked":   {log: newLine("shop", "jane", "10:00:00", tolerations, ""), options: Options{Trial: true}},
		"a violation of others":  {log: newLine("shop", "jane", "10:00:00", "", strings.Replace(violation, "croft-pod-trials", "others", 1)), options: Options{Trial: true}},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLog(c.options)
			if err := l.Read(strings.NewReader(c.log)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(append([]Denial{}, c.want...), l.Denials()); diff != "" {
				t.Errorf("denials (-want +got):\n%s", diff)
			}
			if l.Invalid != c.invalid {
				t.Errorf("%d invalid lines, want %d", l.Invalid, c.invalid)
			}
		})
	}
}

func FuzzLog(f *testing.F) {
	f.Add(newLine("shop", "jane", "10:00:00", tolerations, violation), true)
	f.Add("{\"denied\"}\n{}", false)
	f.Fuzz(func(t *testing.T, content string, trial bool) {
		l := NewLog(Options{Trial: trial})
		if err := l.Read(strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
		for _, d := range l.Denials() {
			if d.Rule == "" || d.Requests < 1 || len(d.Users) < 1 || d.Last.Before(d.First) {
				t.Errorf("%+v", d)
			}
		}
	})
}
