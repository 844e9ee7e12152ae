package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/rules/gatekeeper"
)

// These are the oldest minor versions of Kubernetes 1 with the kinds of the walls.
const (
	oldestNative     = 34 // 34 and 35 with a feature gate, which the check engine covers
	oldestGatekeeper = 30
)

// checkVersion checks the API server's version for each engine.
func checkVersion(s *Snapshot) []Finding {
	minor, err := strconv.Atoi(strings.TrimRight(s.Version.Minor, "+"))
	if s.Version.Major != "1" || err != nil {
		return nil // not a version of Kubernetes 1
	}
	oldest, engine := oldestNative, v1alpha1.PlacementNative
	if getPlacement(s) == v1alpha1.PlacementGatekeeper {
		oldest, engine = oldestGatekeeper, v1alpha1.PlacementGatekeeper
	}
	if minor >= oldest {
		return nil
	}
	return []Finding{newFinding("version-too-old", Problem, "", fmt.Sprintf("the API server is %s, and placement by %s needs 1.%d", s.Version.GitVersion, engine, oldest))}
}

func getPlacement(s *Snapshot) v1alpha1.PlacementEngine {
	return cmp.Or(s.platformSpec().Placement, v1alpha1.PlacementNative)
}

// checkEngine checks the placement engine itself, instead of the operator's conditions about it,
// since the operator may not run.
func checkEngine(s *Snapshot) []Finding {
	if getPlacement(s) == v1alpha1.PlacementNative {
		if s.Native {
			return nil
		}
		return []Finding{{
			Severity: Problem, Message: "the API server does not serve MutatingAdmissionPolicy, which places pods",
			Fix:  apply.NoEngineFix,
			Link: "docs/how-to/gatekeeper.md",
		}}
	}
	var all []Finding
	for _, f := range gatekeeper.Check(s.Gatekeeper) {
		severity := Warning
		if f.Severity == gatekeeper.Unsafe {
			severity = Problem
		}
		finding := newFinding("engine-not-ready", severity, f.Object, strings.TrimSpace(f.Field+" "+f.Message))
		finding.Link = "docs/how-to/gatekeeper.md"
		all = append(all, finding)
	}
	return all
}

// summarizeEngine summarizes this check only: the check walls covers the engine's objects.
func summarizeEngine(s *Snapshot) string {
	if getPlacement(s) == v1alpha1.PlacementNative {
		return "the API server serves MutatingAdmissionPolicies, which place pods"
	}
	return "Gatekeeper is installed, and places every pod"
}

// checkPlatform reports the operator's conditions of declared objects.
func checkPlatform(s *Snapshot) []Finding {
	if s.Declared == nil {
		return nil
	}
	if len(s.Declared.Platforms) == 0 {
		return []Finding{{Severity: Problem, Message: "no Platform is declared", Fix: "declare one: `croft apply -f croft.yaml`", Link: "README.md"}}
	}
	all := findAbsentNamespaces(s)
	if s.Rendered {
		return all // no operator writes conditions
	}
	if !s.isBelievable() {
		all = append(all, Finding{
			Severity: Warning, Message: "the conditions of the Platform, its Pools and Tenants are out of date, since no operator runs: Ready is not reliable",
			Fix: "run the operator: see the check operator",
		})
	}
	for _, o := range s.listOwners() {
		if o.GetDeletionTimestamp() == nil { // the check deletions covers the others
			all = append(all, s.findUnready(o)...)
		}
	}
	return all
}

// soon is the time in which a running operator processes a change and a policy takes
// effect.
const soon = 30 * time.Second

func (s *Snapshot) findUnready(o owner) []Finding {
	ready := meta.FindStatusCondition(o.status.Conditions, v1alpha1.ConditionReady)
	unseen := ready == nil || o.status.ObservedGeneration != o.GetGeneration()
	pending := unseen || ready.Status == metav1.ConditionUnknown ||
		ready.Reason == v1alpha1.ReasonNotEnforcedYet || ready.Reason == v1alpha1.ReasonAPIServerBehind
	switch {
	case pending && s.isBelievable() && s.Now.Sub(findWriteTime(o)) < soon:
		return nil
	case unseen:
		return []Finding{{
			Severity: Problem, Object: o.name, Message: "the operator has not reconciled its current declaration",
			Fix: "check that the operator runs: `kubectl get pods -n " + v1alpha1.SystemNamespace + "`, and its log",
		}}
	case ready.Status == metav1.ConditionTrue, s.waitsForDeletion(ready):
		return nil
	default:
		// Only the first line: Gatekeeper's configuration may take many.
		line, _, _ := strings.Cut(ready.Message, "\n")
		otherwise := "follow the message"
		if pool, ok := strings.CutPrefix(o.name, "Pool/"); ok {
			otherwise = "`croft why nodepool/" + pool + "` shows more"
		}
		return []Finding{newProblem(o.name, ready.Reason+": "+line, otherwise)}
	}
}

// findWriteTime returns the time of the last write to an object, other than to its status.
func findWriteTime(o owner) time.Time {
	at := o.GetCreationTimestamp().Time
	for _, entry := range o.GetManagedFields() {
		if entry.Subresource == "" && entry.Time != nil && entry.Time.After(at) {
			at = entry.Time.Time
		}
	}
	return at
}

// waitsForDeletion reports whether a tenant only waits for the deletion of a namespace.
func (s *Snapshot) waitsForDeletion(ready *metav1.Condition) bool {
	return !slices.ContainsFunc(strings.Split(ready.Message, "\n"), func(line string) bool {
		return !slices.ContainsFunc(slices.Collect(maps.Values(s.RefusedNamespaces)), func(err error) bool {
			var terminating *apply.NamespaceTerminatingError
			return errors.As(err, &terminating) && strings.Contains(line, err.Error())
		})
	})
}
