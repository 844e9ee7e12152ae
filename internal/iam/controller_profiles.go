package iam

// profiles lets Karpenter keep instance profiles for the roles that the file
// names: below a path of the cluster's own, and only with its tags. Where the file
// names instance profiles alone, it only looks for what is left of earlier ones.
func profiles(n *needs) []Statement {
	list := Statement{Sid: "ListProfiles", Actions: []string{"iam:ListInstanceProfiles"}, Resources: []string{"*"}}
	if len(n.roles) == 0 {
		return []Statement{list}
	}
	// A request that goes by the name alone of one that is not there, as those
	// before it is made, has no path.
	named := func(path string) string { return "arn:" + partition + ":iam::" + account + ":instance-profile/" + path }
	of := []string{named("karpenter/" + region + "/" + n.cluster + "/*"), named(n.cluster + "_*")}
	asked, there := n.profileTags(requested), n.profileTags(standing)
	return []Statement{
		{Sid: "MakeProfiles", Actions: []string{"iam:CreateInstanceProfile"}, Resources: of,
			Conditions: conditions(asked, equals(requested+clusterTag, n.cluster))},
		// To make one with tags is to tag it too.
		{Sid: "TagOwnProfiles", Actions: []string{"iam:TagInstanceProfile"}, Resources: of, Conditions: conditions(asked, there, equals(requested+clusterTag, n.cluster))},
		{Sid: "ChangeOwnProfiles", Actions: []string{"iam:AddRoleToInstanceProfile", "iam:DeleteInstanceProfile", "iam:RemoveRoleFromInstanceProfile"},
			Resources: of, Conditions: there},
		{Sid: "ReadProfiles", Actions: []string{"iam:GetInstanceProfile"}, Resources: of},
		list,
	}
}

func (n *needs) profileTags(side string) Conditions {
	return conditions(equals(side+n.ownedTag(), "owned"), equals(side+regionTag, region), like(side+nodeClassTag, "*"))
}
