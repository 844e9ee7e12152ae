package doctor

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/version"
	"croft.dev/croft/internal/operate/heartbeat"
)

const (
	operatorFix = "run it: `croft install --image IMAGE` deploys it, `croft operator` runs it locally; if it is deployed, " +
		"`kubectl -n " + v1alpha1.SystemNamespace + " describe pods` shows why it does not run"
	withoutOperator = "the walls come from a file, without croft's operator"
)

// gatherHeartbeat reads the operator's heartbeat.
func (g *gatherer) gatherHeartbeat(ctx context.Context) {
	if g.Rendered {
		return
	}
	var err error
	g.Heartbeat, err = heartbeat.Read(ctx, g)
	g.Fail(err)
	if g.Heartbeat.Hidden {
		g.Unreadable[readHeartbeat] = "you may not read it"
	}
}

// checkOperator checks whether an operator of the same version runs.
func checkOperator(s *Snapshot) []Finding {
	beat := s.Heartbeat
	switch {
	case s.isBelievable() && (s.Rendered || beat.Hidden || beat.Version == version.String()):
		return nil
	case s.isBelievable():
		return []Finding{{
			Severity: Warning, Message: fmt.Sprintf("its version is %s, and this croft's is %s: their desired states may differ", beat.Version, version.String()),
			Fix: describeSkewFix(beat.Version),
		}}
	default:
		return []Finding{{
			Severity: Problem,
			Message:  beat.Describe(s.Now) + ". Existing walls stay in force; drift is not reverted, and newly declared objects get no walls",
			Fix:      operatorFix,
		}}
	}
}

// describeSkewFix returns the way to a common version. An older croft cannot upgrade the operator.
func describeSkewFix(operator string) string {
	if version.IsOlder(version.String(), operator) {
		return "use croft " + operator + " here: an older version removes objects that the operator needs"
	}
	return "use one version: `helm upgrade`, or `croft install --image IMAGE`, upgrades the operator"
}

// isBelievable reports whether the operator's conditions are current.
func (s *Snapshot) isBelievable() bool { return s.Rendered || s.Heartbeat.IsBelievable(s.Now) }

// summarizeOperator returns the statement if the check of the operator has no findings.
func summarizeOperator(s *Snapshot) string {
	switch {
	case s.Rendered:
		return withoutOperator
	case !s.isBelievable():
		return "the operator runs"
	}
	return "the operator is " + s.Heartbeat.Describe(s.Now)
}

// gatherAbsent finds the Platform's platformNamespaces that do not exist.
func (g *gatherer) gatherAbsent(ctx context.Context) {
	if g.Estate == nil {
		return
	}
	for _, name := range g.Estate.Platform.Network.PlatformNamespaces {
		err := g.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
		if g.Record(readNamespaces, err); apierrors.IsNotFound(err) {
			g.MissingPlatformNamespaces = append(g.MissingPlatformNamespaces, name)
		}
	}
}

// findAbsentNamespaces warns of platformNamespaces that do not exist: traffic from a namespace
// that is created with such a name would be allowed.
func findAbsentNamespaces(s *Snapshot) []Finding {
	var all []Finding
	for _, name := range s.MissingPlatformNamespaces {
		all = append(all, Finding{
			Severity: Warning, Object: "Platform/" + v1alpha1.PlatformName,
			Message: "network.platformNamespaces names " + name + ", which does not exist: a user who creates the namespace could connect to every tenant",
			Fix:     "correct the name, or remove it from network.platformNamespaces",
		})
	}
	return all
}
