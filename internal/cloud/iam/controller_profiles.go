package iam

// allowProfiles allows Karpenter to manage instance profiles for the roles that the file names:
// only below the cluster's own path, and only with its tags. If the file names nothing but
// instance profiles, Karpenter only lists profiles, to find leftovers.
func allowProfiles(n *needs) []Statement {
	list := Statement{Sid: "ListProfiles", Actions: []string{"iam:ListInstanceProfiles"}, Resources: []string{"*"}}
	if len(n.roles) == 0 {
		return []Statement{list}
	}
	// A request by name for an instance profile that does not exist has no path in its ARN.
	// Karpenter makes such a request before it creates a profile.
	named := func(path string) string { return "arn:" + partition + ":iam::" + account + ":instance-profile/" + path }
	resources := []string{named("karpenter/" + region + "/" + n.cluster + "/*"), named(n.cluster + "_*")}
	requestConditions, there := n.buildProfileConditions(requested), n.buildProfileConditions(standing)
	return []Statement{
		{Sid: "MakeProfiles", Actions: []string{"iam:CreateInstanceProfile"}, Resources: resources,
			Conditions: mergeConditions(requestConditions, newEquals(requested+clusterTag, n.cluster))},
		// Creating a profile with tags needs the right to tag it, too.
		{Sid: "TagOwnProfiles", Actions: []string{"iam:TagInstanceProfile"}, Resources: resources, Conditions: mergeConditions(requestConditions, there, newEquals(requested+clusterTag, n.cluster))},
		{Sid: "ChangeOwnProfiles", Actions: []string{"iam:AddRoleToInstanceProfile", "iam:DeleteInstanceProfile", "iam:RemoveRoleFromInstanceProfile"},
			Resources: resources, Conditions: there},
		{Sid: "ReadProfiles", Actions: []string{"iam:GetInstanceProfile"}, Resources: resources},
		list,
	}
}

func (n *needs) buildProfileConditions(side string) Conditions {
	return mergeConditions(newEquals(side+n.ownedTag(), "owned"), newEquals(side+regionTag, region), newLike(side+nodeClassTag, "*"))
}
