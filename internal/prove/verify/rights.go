package verify

import (
	"context"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Right is a verb on a resource, in the whole cluster or on one object of it.
type Right struct{ Verb, Group, Resource, Name string }

// String returns the right as in RBAC's messages.
func (r Right) String() string {
	text := r.Verb + " " + r.Resource
	if r.Group != "" {
		text += "." + r.Group
	}
	if r.Name != "" {
		text += " " + r.Name
	}
	return text
}

func listImpersonationRights(user, group string) []Right {
	return []Right{{Verb: "impersonate", Resource: "users", Name: user}, {Verb: "impersonate", Resource: "groups", Name: group}}
}

// Needs returns the rights needed to act as the tenant's members.
func (x *Existing) Needs() []Right {
	var needs []Right
	for _, as := range listIdentities(x.attacker) {
		for _, right := range listImpersonationRights(as.UserName, "") {
			if right.Resource == "users" && !slices.Contains(needs, right) {
				needs = append(needs, right)
			}
		}
		for _, group := range as.Groups {
			if right := (Right{Verb: "impersonate", Resource: "groups", Name: group}); !slices.Contains(needs, right) {
				needs = append(needs, right)
			}
		}
	}
	return append(needs, Right{Verb: "list", Group: "networking.k8s.io", Resource: "networkpolicies"})
}

// FindLacking returns the rights that the client's user does not have.
func FindLacking(ctx context.Context, c client.Client, rights []Right) ([]Right, error) {
	var lacking []Right
	for _, r := range rights {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: r.Verb, Group: r.Group, Resource: r.Resource, Name: r.Name},
		}}
		if err := c.Create(ctx, review); err != nil {
			return nil, err
		}
		if !review.Status.Allowed {
			lacking = append(lacking, r)
		}
	}
	return lacking, nil
}

// GetSelf returns the client's user as the API server authenticates it.
func GetSelf(ctx context.Context, c client.Client) (authenticationv1.UserInfo, error) {
	review := &authenticationv1.SelfSubjectReview{}
	err := c.Create(ctx, review)
	return review.Status.UserInfo, err
}
