package identity

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/attack"
)

// buildElevationAttacks request and approve elevations that must not be granted.
func buildElevationAttacks(p *estate.Platform, by, on *estate.Tenant) []attack.Attack {
	if p.Elevation == nil {
		return nil
	}
	request := func(name, namespace, requester string, duration time.Duration) *v1alpha1.Elevation {
		return &v1alpha1.Elevation{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Elevation"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: v1alpha1.ElevationSpec{
				RequestedBy: requester, Role: v1alpha1.ElevationOperator, Duration: metav1.Duration{Duration: duration},
				Reason: "croft verify", PublicKey: strings.Repeat("A", 43) + "=",
			},
		}
	}
	own := by.Namespaces[0]
	const short = 15 * time.Minute
	policy := func(rule string) attack.Stopper { return attack.ByPolicy(ElevationsPolicy, rule) }
	beforehand := request("elevate-approved", own, "somebody", short)
	beforehand.Spec.ApprovedBy = attack.Verifier
	forged := attack.NewUpdate("forge-elevation", "set the status of a request for elevation to granted", attack.ByRBAC,
		request("forge-elevation", own, "somebody", short),
		func(e *v1alpha1.Elevation) { e.Status.Phase = v1alpha1.ElevationActive })
	forged.Request.Verb, forged.Request.Subresource = attack.Patch, "status"
	all := attack.WithReason("an elevation is only as trustworthy as its approval and its record", nil,
		attack.NewCreate("elevate-as-another", "request an elevation in another's name",
			policy(RequesterRule),
			request("elevate-as-another", own, "somebody", short)),
		attack.NewCreate("elevate-for-long", "request an elevation for longer than the platform allows",
			policy(DurationRule),
			request("elevate-for-long", own, attack.FindMember(by.Access, v1alpha1.RoleOperator), p.Elevation.MaxDuration.Duration+time.Minute)),
		attack.NewCreate("elevate-approved", "request an elevation with an approval",
			policy(ApproverRule), beforehand),
		makeBreach("elevate-elsewhere", "request an elevation in another tenant", attack.Create,
			request("elevate-elsewhere", on.Namespaces[0], "somebody", short)),
		forged,
		attack.NewCreate("elevate", "request an elevation", attack.Nobody, request("elevate", own, attack.FindMember(by.Access, v1alpha1.RoleOperator), short)),
	)
	if len(p.Elevation.Approvers) == 0 {
		return all
	}
	approving := func(name, summary string, by attack.Stopper, requester, approver string) attack.Attack {
		a := attack.NewUpdate(name, summary, by, request(name, own, requester, short),
			func(e *v1alpha1.Elevation) { e.Spec.ApprovedBy = approver })
		a.Request.Verb, a.AsGroups = attack.Patch, p.Elevation.Approvers
		return a
	}
	return append(all, attack.WithReason("no one may grant rights to themselves without a second person", nil,
		approving("approve-own-elevation", "approve one's own elevation", policy(SecondPersonRule), attack.Verifier, attack.Verifier),
		approving("approve-as-another", "approve an elevation in another's name", policy(ApproverRule),
			"somebody", "somebody-else"),
		approving("approve-elevation", "approve another user's elevation", attack.Nobody, "somebody", attack.Verifier),
	)...)
}
