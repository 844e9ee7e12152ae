// Package denials finds refused requests in an API server's audit log, and the rules that refused
// them. The API server stores refusals nowhere else: events name only refused pods of controllers,
// and metrics name no namespace.
package denials

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"croft.dev/croft/internal/rules/admissionpolicy"
)

// The names of refusals that no rule of croft makes.
const (
	podSecurity   = "PodSecurity"
	resourceQuota = "ResourceQuota"
	limitRange    = "LimitRange"
)

const (
	// TrialsPolicy is the policy whose rules warn and write to the audit log instead of refusing.
	TrialsPolicy = "croft-pod-trials"
	// failures is the annotation of the action Audit
	// (https://kubernetes.io/docs/reference/labels-annotations-taints/audit-annotations/).
	failures = "validation.policy.admission.k8s.io/validation_failure"
	// maxUsers is the maximum number of users of a Denial.
	maxUsers = 100
)

// Denial is a rule that refused requests in a namespace.
type Denial struct {
	// Namespace is empty for objects without a namespace.
	Namespace string `json:"namespace"`
	// Rule is a policy or a constraint with its rule, such as croft-pods/tolerations, or PodSecurity,
	// ResourceQuota or LimitRange.
	Rule string `json:"rule"`
	// Requests is the number of refused requests. Dry runs do not count.
	Requests int       `json:"requests"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
	// Users are the first users, sorted: people, service accounts and controllers.
	Users []string `json:"users"`
	// Message is the refusal of the last request.
	Message string `json:"message"`
}

// Options select denials.
type Options struct {
	// Trial selects violations of rules on trial, which were not refused.
	Trial bool
	// Namespace selects one namespace, unless it is empty.
	Namespace string
	// Since is the time of the first request that counts. The zero time selects all.
	Since time.Time
}

// Log collects the denials of audit logs.
type Log struct {
	options Options
	byKey   map[key]*Denial
	// Events is the number of events that were read, and Invalid the number of lines that are no
	// audit event, such as an incomplete first line.
	Events, Invalid int
}

type key struct{ namespace, rule string }

// NewLog returns an empty log.
func NewLog(o Options) *Log { return &Log{options: o, byKey: map[key]*Denial{}} }

// Read adds the events of a log file: one event of audit.k8s.io/v1 in each line.
func (l *Log) Read(from io.Reader) error {
	lines := bufio.NewReaderSize(from, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			l.readLine(line)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// signs are the texts of lines with a denial. Parsing only these lines makes a large log ten times
// faster to read.
var signs = [][]byte{[]byte("denied"), []byte("violates PodSecurity"), []byte("exceeded quota"), []byte(" usage per "), []byte(failures)}

func (l *Log) readLine(line []byte) {
	if line[0] != '{' || line[len(line)-1] != '}' {
		l.Invalid++
		return
	}
	l.Events++
	if !slices.ContainsFunc(signs, func(sign []byte) bool { return bytes.Contains(line, sign) }) {
		return
	}
	var e auditv1.Event
	if err := json.Unmarshal(line, &e); err != nil || e.APIVersion != auditv1.SchemeGroupVersion.String() {
		l.Events, l.Invalid = l.Events-1, l.Invalid+1
		return
	}
	at := e.RequestReceivedTimestamp.Time
	if e.Stage != auditv1.StageResponseComplete || e.ObjectRef == nil || strings.Contains(e.RequestURI, "dryRun=") || at.Before(l.options.Since) ||
		l.options.Namespace != "" && e.ObjectRef.Namespace != l.options.Namespace {
		return
	}
	rule, message := findRefusal(&e)
	if l.options.Trial {
		rule, message = findViolation(&e)
	}
	if rule != "" {
		l.add(&e, rule, message)
	}
}

func (l *Log) add(e *auditv1.Event, rule, message string) {
	at, user := e.RequestReceivedTimestamp.UTC(), e.User.Username
	if e.ImpersonatedUser != nil {
		user = e.ImpersonatedUser.Username
	}
	id := key{e.ObjectRef.Namespace, rule}
	d := l.byKey[id]
	if d == nil {
		d = &Denial{Namespace: id.namespace, Rule: rule, First: at}
		l.byKey[id] = d
	}
	d.Requests++
	if at.Before(d.First) {
		d.First = at
	}
	if !at.Before(d.Last) {
		d.Last, d.Message = at, message
	}
	if i, found := slices.BinarySearch(d.Users, user); !found && len(d.Users) < maxUsers {
		d.Users = slices.Insert(d.Users, i, user)
	}
}

// Denials returns the denials by namespace, with the most frequent ones first.
func (l *Log) Denials() []Denial {
	all := make([]Denial, 0, len(l.byKey))
	for _, d := range l.byKey {
		all = append(all, *d)
	}
	slices.SortFunc(all, func(a, b Denial) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Rule, b.Rule))
	})
	return all
}

var (
	byConstraint = regexp.MustCompile(`(?s)admission webhook "validation\.gatekeeper\.sh" denied the request: \[([^\]]+)\] (?:\[([a-z0-9-]+)\] )?(.*)`)
	byRule       = regexp.MustCompile(`(?s)^(?:\[([a-z0-9-]+)\] )?(.*)`)
)

// findRefusal returns the rule that refused a request, and its message, or "".
func findRefusal(e *auditv1.Event) (rule, message string) {
	if e.ResponseStatus == nil || e.ResponseStatus.Code < http.StatusBadRequest {
		return "", ""
	}
	return ParseRefusal(e.ResponseStatus.Message)
}

// ParseRefusal returns the rule that the API server's refusal names, as in Denial, and the rule's message, or "".
func ParseRefusal(text string) (rule, message string) {
	if refusal, byPolicy := admissionpolicy.ParseRefusal(text); byPolicy {
		return joinRule(refusal.Policy, refusal.Rule), refusal.Message
	}
	if found := byConstraint.FindStringSubmatch(text); found != nil {
		return joinRule(found[1], found[2]), found[3]
	}
	for _, other := range []struct{ sign, rule string }{
		{"violates PodSecurity ", podSecurity}, {"exceeded quota: ", resourceQuota}, {" usage per ", limitRange},
	} {
		if strings.Contains(text, other.sign) {
			return other.rule, text
		}
	}
	return "", ""
}

// findViolation returns the rule on trial that a request violated, and its message, or "".
func findViolation(e *auditv1.Event) (rule, message string) {
	var all []struct{ Policy, Message string }
	if err := json.Unmarshal([]byte(cmp.Or(e.Annotations[failures], "[]")), &all); err != nil {
		return "", ""
	}
	for _, violation := range all {
		if violation.Policy == TrialsPolicy {
			found := byRule.FindStringSubmatch(violation.Message)
			return joinRule(violation.Policy, found[1]), found[2]
		}
	}
	return "", ""
}

func joinRule(policy, rule string) string {
	if rule == "" {
		return policy
	}
	return policy + "/" + rule
}
