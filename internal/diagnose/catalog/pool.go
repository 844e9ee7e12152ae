package catalog

const awsIAM = "https://docs.aws.amazon.com/IAM/latest/UserGuide/"

// poolRows are causes that prevent a NodePool or its node class from becoming ready.
var poolRows = []Row{
	{
		ID: "node-class-not-found", Symptom: "condition NodeClassReady of the NodePool",
		Signature: compileAny(`NodeClassNotFound`, `NodeClass not found on cluster`),
		Texts:     []string{FormatCondition("NodeClassReady", "False", "NodeClassNotFound", "NodeClass not found on cluster")},
		Cause:     "the NodePool names a node class that does not exist",
		Fix:       "correct `nodeClassRef` (group, kind and name), or create the node class; for a node class that croft creates, `croft status` shows why croft did not write it",
		Who:       Platform, Link: "https://karpenter.sh/docs/concepts/nodeclasses/",
	},
	{
		ID: "node-class-unknown", Symptom: "condition NodeClassReady of the NodePool, condition Launched of the NodeClaim",
		Signature: compileAny(`NodeClassReadinessUnknown`, `Node Class Readiness Unknown`),
		Texts: []string{
			FormatCondition("NodeClassReady", "False", "NodeClassReadinessUnknown", "Node Class Readiness Unknown"),
			FormatCondition("Launched", "Unknown", "NodeClassReadinessUnknown", "NodeClass is in Ready=Unknown"),
		},
		Cause: "the node class does not report yet whether it is ready: the provider's controller does not run, cannot reach the cloud, or does not know the class's group",
		Fix:   "check the node class's conditions, Karpenter's log and `nodeClassRef`",
		Run:   LogCommand,
		Who:   Platform, Link: karpenterDocs + "#nodeclass-readiness",
	},
	{
		ID: "node-class-terminating", Symptom: "condition NodeClassReady of the NodePool",
		Signature: compileAny(`NodeClassTerminating`),
		Texts:     []string{FormatCondition("NodeClassReady", "False", "NodeClassTerminating", "NodeClass is Terminating")},
		Cause:     "the node class is being deleted, and waits for its last node",
		Fix:       "name another class in the pool, or let the deletion finish and create the class again",
		Who:       Platform, Link: "https://karpenter.sh/docs/concepts/nodeclasses/",
	},
	{
		ID: "pool-invalid", Symptom: "condition ValidationSucceeded of the NodePool",
		Signature: compileAny(`NodePoolValidationFailed`),
		Texts:     []string{FormatCondition("ValidationSucceeded", "False", "NodePoolValidationFailed", `invalid value: label domain "karpenter.sh" is restricted`)},
		Cause:     "Karpenter does not accept the NodePool",
		Fix:       "correct the requirement that the message names in the Pool's `instances.requirements`",
		Who:       Platform, Link: "https://karpenter.sh/docs/concepts/nodepools/",
	},
	{
		ID: "subnets-not-found", Symptom: "condition SubnetsReady of the EC2NodeClass",
		Signature: compileAny(`SubnetsNotFound`, `SubnetSelector did not match any Subnets`),
		Texts:     []string{FormatCondition("SubnetsReady", "False", "SubnetsNotFound", "SubnetSelector did not match any Subnets")},
		Cause:     "no subnet in Karpenter's region has the tags or the ID that the node class selects",
		Fix:       "tag the subnets as `subnetSelectorTerms` require (croft: karpenter.sh/discovery with the cluster's name, or `aws.discovery`), or correct the terms; check the region",
		Who:       Platform, Link: "https://karpenter.sh/docs/concepts/nodeclasses/#specsubnetselectorterms",
	},
	{
		ID: "security-groups-not-found", Symptom: "condition SecurityGroupsReady of the EC2NodeClass",
		Signature: compileAny(`SecurityGroupsNotFound`, `SecurityGroupSelector did not match any SecurityGroups`),
		Texts:     []string{FormatCondition("SecurityGroupsReady", "False", "SecurityGroupsNotFound", "SecurityGroupSelector did not match any SecurityGroups")},
		Cause:     "no security group has the tags, the name or the ID that the node class selects",
		Fix:       "tag the security groups as `securityGroupSelectorTerms` require, or correct the terms; check the region",
		Who:       Platform, Link: "https://karpenter.sh/docs/concepts/nodeclasses/#specsecuritygroupselectorterms",
	},
	{
		ID: "amis-not-found", Symptom: "condition AMIsReady of the EC2NodeClass, condition Launched of the NodeClaim",
		Signature: compileAny(`AMINotFound`, `AMISelector did not match any AMIs`, `UnsupportedAlias`, `InvalidAMIID`),
		Texts: []string{
			FormatCondition("AMIsReady", "False", "AMINotFound", "AMISelector did not match any AMIs"),
			FormatCondition("Launched", "Unknown", "AMINotFound", "Error creating fleet request: AMI used for instance launch either does not exist or you don't have permissions to use it"),
		},
		Cause: "the node class selects no existing image: its alias does not exist for this Kubernetes version, the image is in another region, or it is not shared with the account",
		Fix:   "correct `amiSelectorTerms` (croft: `aws.amiAlias`, such as al2023@latest)",
		Who:   Platform, Link: "https://karpenter.sh/docs/concepts/nodeclasses/#specamiselectorterms",
	},
	{
		ID: "dry-run-denied", Symptom: "condition ValidationSucceeded of the EC2NodeClass",
		Signature: compileAny(`(RunInstances|CreateFleet|CreateLaunchTemplate)AuthCheckFailed`, `Controller isn't authorized to call ec2:`),
		Exclude:   compileAny(`due to a (service control policy|permission boundary)`),
		Texts: []string{
			FormatCondition("ValidationSucceeded", "False", "RunInstancesAuthCheckFailed", "Controller isn't authorized to call ec2:RunInstances: User is not authorized to perform this operation because no identity-based policy allows it"),
			FormatCondition("ValidationSucceeded", "False", "CreateLaunchTemplateAuthCheckFailed", "Controller isn't authorized to call ec2:CreateLaunchTemplate: User is not authorized to perform this operation because no identity-based policy allows it"),
		},
		Cause: "AWS refused the dry run with which Karpenter validates the node class",
		Fix:   "allow the action in the controller's IAM policy, and check its conditions on tags and resources; Karpenter's log has AWS's complete response, whose decoded message names the action",
		Run:   LogCommand,
		Who:   Platform, Link: "https://karpenter.sh/docs/reference/cloudformation/",
	},
	{
		ID: "class-unresolved", Symptom: "conditions of the EC2NodeClass that stay Unknown",
		Signature: compileAny(`(Subnets|SecurityGroups|AMIs|InstanceProfile|CapacityReservations)Ready=Unknown`),
		Texts: []string{
			FormatCondition("InstanceProfileReady", "Unknown", "AwaitingReconciliation", "object is awaiting reconciliation"),
			FormatCondition("SubnetsReady", "Unknown", "AwaitingReconciliation", "object is awaiting reconciliation"),
		},
		Cause: "Karpenter cannot find, or cannot create, a resource that the node class needs: AWS refuses the request, or cannot be reached. For an instance profile, usually iam:PassRole is missing or the role does not exist",
		Fix:   "read AWS's response in Karpenter's log; grant the controller's role the right that it names",
		Run:   LogCommand,
		Who:   Platform, Link: karpenterDocs,
	},
	{
		ID: "tags-invalid", Symptom: "condition ValidationSucceeded of the EC2NodeClass",
		Signature: compileAny(`TagValidationFailed`),
		Texts:     []string{FormatCondition("ValidationSucceeded", "False", "TagValidationFailed", `tag key "karpenter.sh/nodepool" is restricted`)},
		Cause:     "the node class sets a tag that Karpenter reserves",
		Fix:       "remove the tag from `tags`",
		Who:       Platform, Link: "https://karpenter.sh/docs/concepts/nodeclasses/#spectags",
	},
	{
		ID: "cluster-cidr", Symptom: "condition ValidationSucceeded of the EC2NodeClass",
		Signature: compileAny(`ClusterCIDRResolutionFailed`, `[Ff]ailed to detect the cluster CIDR`),
		Texts:     []string{FormatCondition("ValidationSucceeded", "False", "ClusterCIDRResolutionFailed", "Failed to detect the cluster CIDR")},
		Cause:     "Karpenter cannot get the cluster's service addresses from EKS, which AL2023 nodes need",
		Fix:       "allow eks:DescribeCluster, check CLUSTER_NAME, or use another AMI family",
		Who:       Platform, Link: karpenterDocs,
	},
}
