package estate

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/wording"
)

// The rules of this file are Karpenter's rules for NodePools, from its CRD and its controllers:
// Karpenter can accept a NodePool and still ignore its limits and schedules.

// nodeNames are the resources of nodes, except for devices and huge pages; nodes counts
// the nodes themselves.
var nodeNames = []string{"cpu", "ephemeral-storage", "memory", "nodes", "pods"}

// checkLimitNames refuses limits on resources that no node has: they would never be reached.
func checkLimitNames(_ *checker, p *v1alpha1.Pool) []finding {
	var all []finding
	for _, key := range slices.Sorted(maps.Keys(p.Spec.Limits)) {
		name := string(key)
		here := field.NewPath("spec", "limits").Key(name)
		if size, huge := strings.CutPrefix(name, hugePages); huge {
			if why := explainInvalidPageSize(name, size); why != "" {
				all = append(all, makeFinding(here, "%s", why)...)
			}
			continue
		}
		plain, asked := strings.CutPrefix(strings.TrimPrefix(name, "limits."), requests)
		switch {
		case slices.Contains(nodeNames, name), strings.Contains(name, "/") && !asked && isLabel(name):
		case asked && (slices.Contains(nodeNames, plain) || manifest.IsDevice(plain)):
			all = append(all, makeFinding(here, "no node has %s, so this limits nothing; did you mean %s?", name, plain)...)
		default:
			hint := suggestName(plain, nodeNames)
			if hint == "" {
				hint = "; nodes have " + wording.Enumerate(nodeNames, "and") + ", and devices such as nvidia.com/gpu"
			}
			all = append(all, makeFinding(here, "no node has %s, so this limits nothing%s", name, hint)...)
		}
	}
	return all
}

// shortestTTL is the lifetime below which a node is replaced before it has been of much use: a
// cloud takes minutes to start one. A shorter lifetime is only warned of, since simulated nodes
// start in seconds.
const shortestTTL = 10 * time.Minute

// checkNodeTTL refuses nodes that expire when they are created.
func checkNodeTTL(_ *checker, p *v1alpha1.Pool) []finding {
	at := field.NewPath("spec", "ttl")
	span, err := time.ParseDuration(string(p.Spec.TTL))
	switch {
	case err != nil: // Never, or too long, which durationsEnd refuses
		return nil
	case span == 0:
		return makeFinding(at, "with %s each node would be replaced as soon as it is created, and no pod would run; leave it out, or write Never, or a time such as 168h", p.Spec.TTL)
	case span < shortestTTL:
		return makeWarning(at, "each node is replaced %s after its creation, and takes minutes to start; write a longer time, such as 168h", p.Spec.TTL)
	}
	return nil
}

// karpentersSchedule is the pattern for schedules in Karpenter's CRD. Its controllers have
// further requirements.
var karpentersSchedule = regexp.MustCompile(`^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$`)

// someDay is an arbitrary time from which the next time of a schedule is computed.
var someDay = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// checkBudgets refuses schedules that Karpenter cannot parse or that never match, and budgets
// without a duration.
func checkBudgets(_ *checker, p *v1alpha1.Pool) []finding {
	var all []finding
	for i, b := range p.Spec.Budgets {
		if b.Schedule == "" {
			continue
		}
		at := field.NewPath("spec", "budgets").Index(i)
		schedule, finding := parseSchedule(at.Child("schedule"), b.Schedule)
		switch {
		case schedule == nil:
			all = append(all, finding...)
		case schedule.Next(someDay).IsZero():
			all = append(all, makeFinding(at.Child("schedule"), "the time %q never occurs, and Karpenter always applies such a budget; write a day that exists", b.Schedule)...)
		}
		if span, err := time.ParseDuration(b.Duration); err == nil && span == 0 {
			all = append(all, makeFinding(at.Child("duration"), "a budget with a duration of %s never applies; write at least 1m", b.Duration)...)
		}
	}
	return all
}

// parseSchedule returns a schedule in UTC, or a finding.
func parseSchedule(at *field.Path, text string) (cron.Schedule, []finding) {
	schedule, err := cron.ParseStandard("TZ=UTC " + text)
	if err != nil || !karpentersSchedule.MatchString(text) {
		return nil, makeFinding(at,
			"%q is not a cron schedule%s; write minute, hour, day of the month, month and day of the week in UTC, such as \"0 9 * * mon-fri\", or @daily", text, formatCause(err))
	}
	return schedule, nil
}

// formatCause returns the parser's message about a schedule, if it helps the author.
func formatCause(err error) string {
	if err == nil || strings.Contains(err.Error(), "location") {
		return ""
	}
	return " (" + err.Error() + ")"
}

// checkClassRef refuses a reference to a node class that is invalid in a NodePool.
func checkClassRef(_ *checker, p *v1alpha1.Pool) []finding {
	if p.Spec.NodeClass == nil {
		return nil
	}
	return checkRef(p.Spec.NodeClass.Ref)
}

func checkPlatformClassRef(p *v1alpha1.PlatformSpec) []finding { return checkRef(p.NodeClass.Ref) }

func checkRef(ref *v1alpha1.NodeClassRef) []finding {
	if ref == nil || len(validation.IsDNS1123Subdomain(ref.Group)) == 0 {
		return nil
	}
	at := field.NewPath("spec", "nodeClass", "ref", "group")
	if group, _, versioned := strings.Cut(ref.Group, "/"); versioned {
		return makeFinding(at, "%s is not an API group; write it without a version, such as %s", ref.Group, group)
	}
	return makeFinding(at, "%s is not an API group; write one such as karpenter.k8s.aws", ref.Group)
}

// hasKarpenterDomain reports whether Karpenter's CRD takes a label for one of its own, by the
// suffix of its domain: this includes mykarpenter.sh.
func hasKarpenterDomain(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return strings.HasSuffix(domain, "karpenter.sh") && key != karpenterv1.CapacityTypeLabelKey
}

// exceedsInteger reports whether a requirement compares with a number that is too large for
// Karpenter.
func exceedsInteger(r *v1alpha1.Requirement) bool {
	if r.Operator != corev1.NodeSelectorOpGt && r.Operator != corev1.NodeSelectorOpLt || len(r.Values) == 0 {
		return false
	}
	_, err := strconv.ParseInt(r.Values[0], 10, 64)
	return err != nil
}

// isLabel reports whether a key is a valid label key.
func isLabel(key string) bool { return len(validation.IsQualifiedName(key)) == 0 }
