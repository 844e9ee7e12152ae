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
	"croft.dev/croft/internal/manifest"
	"croft.dev/croft/internal/wording"
)

// The rules of this file are Karpenter's rules for NodePools, from its CRD and its controllers:
// Karpenter can accept a NodePool and still ignore its limits and schedules.

// nodeNames are the resources of nodes, except for devices and huge pages; nodes counts
// the nodes themselves.
var nodeNames = []string{"cpu", "ephemeral-storage", "memory", "nodes", "pods"}

// limitsAreOfNodes refuses limits on resources that no node has: they would never be reached.
func limitsAreOfNodes(_ *whole, p *v1alpha1.Pool) []finding {
	var all []finding
	for _, key := range slices.Sorted(maps.Keys(p.Spec.Limits)) {
		name := string(key)
		here := field.NewPath("spec", "limits").Key(name)
		if size, huge := strings.CutPrefix(name, hugePages); huge {
			if why := whyNoPageSize(name, size); why != "" {
				all = append(all, found(here, "%s", why)...)
			}
			continue
		}
		plain, asked := strings.CutPrefix(strings.TrimPrefix(name, "limits."), requests)
		switch {
		case slices.Contains(nodeNames, name), strings.Contains(name, "/") && !asked && isLabel(name):
		case asked && (slices.Contains(nodeNames, plain) || manifest.IsDevice(plain)):
			all = append(all, found(here, "no node has %s, so that this limits nothing; did you mean %s?", name, plain)...)
		default:
			hint := didYouMean(plain, nodeNames)
			if hint == "" {
				hint = "; there is " + wording.Enumerate(nodeNames, "and") + ", and devices such as nvidia.com/gpu"
			}
			all = append(all, found(here, "no node has %s, so that this limits nothing%s", name, hint)...)
		}
	}
	return all
}

// shortestTTL is the lifetime below which a node is replaced before it has been of much use: a
// cloud takes minutes to start one. A shorter lifetime is only warned of, since simulated nodes
// start in seconds.
const shortestTTL = 10 * time.Minute

// nodesLiveLongEnough refuses nodes that expire when they are created.
func nodesLiveLongEnough(_ *whole, p *v1alpha1.Pool) []finding {
	at := field.NewPath("spec", "ttl")
	span, err := time.ParseDuration(string(p.Spec.TTL))
	switch {
	case err != nil: // Never, or too long, which durationsEnd refuses
		return nil
	case span == 0:
		return found(at, "with %s each node would be replaced as soon as it is made, and no pod would run; leave it out, or write Never, or a time such as 168h", p.Spec.TTL)
	case span < shortestTTL:
		return warned(at, "each node is replaced %s after it is made, and takes minutes to start; write a longer time, such as 168h", p.Spec.TTL)
	}
	return nil
}

// karpentersSchedule is the pattern for schedules in Karpenter's CRD. Its controllers have
// further requirements.
var karpentersSchedule = regexp.MustCompile(`^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$`)

// someDay is an arbitrary time from which the next time of a schedule is computed.
var someDay = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// budgetsBegin refuses schedules that Karpenter cannot parse or that never match, and budgets
// without a duration.
func budgetsBegin(_ *whole, p *v1alpha1.Pool) []finding {
	var all []finding
	for i, b := range p.Spec.Budgets {
		if b.Schedule == "" {
			continue
		}
		at := field.NewPath("spec", "budgets").Index(i)
		schedule, err := cron.ParseStandard("TZ=UTC " + b.Schedule)
		switch {
		case err != nil || !karpentersSchedule.MatchString(b.Schedule):
			all = append(all, found(at.Child("schedule"),
				"%q is no cron schedule%s; write minute, hour, day of the month, month and day of the week in UTC, such as \"0 9 * * mon-fri\", or @daily", b.Schedule, because(err))...)
		case schedule.Next(someDay).IsZero():
			all = append(all, found(at.Child("schedule"), "the time %q never comes, and Karpenter takes such a budget to hold always; write a day that there is", b.Schedule)...)
		}
		if span, err := time.ParseDuration(b.Duration); err == nil && span == 0 {
			all = append(all, found(at.Child("duration"), "a budget that holds for %s never holds; write at least 1m", b.Duration)...)
		}
	}
	return all
}

// because returns the parser's message about a schedule, if it helps the author.
func because(err error) string {
	if err == nil || strings.Contains(err.Error(), "location") {
		return ""
	}
	return " (" + err.Error() + ")"
}

// classRefFits refuses a reference to a node class that is invalid in a NodePool.
func classRefFits(_ *whole, p *v1alpha1.Pool) []finding {
	if p.Spec.NodeClass == nil {
		return nil
	}
	return refFits(p.Spec.NodeClass.Ref)
}

func platformClassRefFits(p *v1alpha1.PlatformSpec) []finding { return refFits(p.NodeClass.Ref) }

func refFits(ref *v1alpha1.NodeClassRef) []finding {
	if ref == nil || len(validation.IsDNS1123Subdomain(ref.Group)) == 0 {
		return nil
	}
	at := field.NewPath("spec", "nodeClass", "ref", "group")
	if group, _, versioned := strings.Cut(ref.Group, "/"); versioned {
		return found(at, "%s is no API group; write it without a version, such as %s", ref.Group, group)
	}
	return found(at, "%s is no API group; write one such as karpenter.k8s.aws", ref.Group)
}

// endsAsKarpenters reports whether Karpenter's CRD takes a label for one of its own, by the
// suffix of its domain: this includes mykarpenter.sh.
func endsAsKarpenters(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return strings.HasSuffix(domain, "karpenter.sh") && key != karpenterv1.CapacityTypeLabelKey
}

// isBeyondCounting reports whether a requirement compares with a number that is too large for
// Karpenter.
func isBeyondCounting(r *v1alpha1.Requirement) bool {
	if r.Operator != corev1.NodeSelectorOpGt && r.Operator != corev1.NodeSelectorOpLt || len(r.Values) == 0 {
		return false
	}
	_, err := strconv.ParseInt(r.Values[0], 10, 64)
	return err != nil
}

// isLabel reports whether a key is a valid label key.
func isLabel(key string) bool { return len(validation.IsQualifiedName(key)) == 0 }
