package catalog

// nodeRows are causes why a launched node takes no pods, or why pods do not start on it.
var nodeRows = []Row{
	{
		ID: "not-registered", Symptom: "condition Registered of the NodeClaim; condition NodeRegistrationHealthy of the NodePool; kubelet's log",
		Signature: compileAny(`Node not registered with cluster`, `NodeRegistrationHealthy=False RegistrationFailed`, `(register node|contact API server|node lease).{0,400}Unauthorized`),
		Texts: []string{
			FormatCondition("Registered", "Unknown", "NodeNotFound", "Node not registered with cluster"),
			FormatCondition("NodeRegistrationHealthy", "False", "RegistrationFailed", "Failed to register node"),
			`"Unable to register node with API server" err="Unauthorized" node="ip-10-0-0-1.eu-central-1.compute.internal"`,
		},
		Cause: "the instance runs, and its kubelet does not join the cluster; Karpenter gives up after 15 minutes and tries another",
		Fix:   "let the nodes' role in: an access entry of type EC2_LINUX, or its line in aws-auth; then check that the subnets reach the API server, and the node's user data",
		Who:   Platform, Link: karpenterDocs + "#node-launchreadiness",
		Produced: Produced{BySandbox, "internal/e2e TestWhy/not-registered: kwok delays the node"},
	},
	{
		ID: "unregistered-taint-missing", Symptom: "event UnregisteredTaintMissing of the NodeClaim; Karpenter's log",
		Signature: compileAny(`[Mm]issing (karpenter.sh/unregistered )?taint,? (which )?prevents registration[- ]related race`),
		Texts: []string{
			`missing taint prevents registration-related race conditions on Karpenter-managed nodes`,
			`Missing karpenter.sh/unregistered taint which prevents registration related race conditions on Karpenter-managed nodes`,
		},
		Cause: "the node joined without the taint that keeps pods off it until Karpenter has set its labels and taints: pods of anybody could get there first",
		Fix:   "a custom image's kubelet must register with `--register-with-taints=karpenter.sh/unregistered:NoExecute`",
		Who:   Platform, Link: karpenterDocs + "#node-notready",
		Produced: Produced{BySandbox, "internal/e2e TestWhy/unregistered-taint-missing: a policy of the test takes the taint off kwok's node"},
	},
	{
		ID: "startup-taint", Symptom: "condition Initialized of the NodeClaim; the node, where the taint came back later",
		Signature: compileAny(`StartupTaint .* still exists`, `KnownEphemeralTaint .* still exists`),
		Texts: []string{
			FormatCondition("Initialized", "Unknown", "StartupTaintsExist", `StartupTaint "example.org/agent:NoSchedule" still exists`),
			FormatCondition("Initialized", "Unknown", "KnownEphemeralTaintsExist", `KnownEphemeralTaint "node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule" still exists`),
		},
		Cause: "the program that removes the startup taint is not ready on the node; or it removed the taint before the node had registered, and Karpenter put it back (karpenter#1479, #1772)",
		Fix:   "let the DaemonSet that removes it run on the node (does it tolerate the pool's taint?), and remove the taint only once the node has the label karpenter.sh/registered=true; or drop it from the Pool's `startupTaints`",
		Who:   Platform, Link: "https://karpenter.sh/docs/concepts/nodepools/#cilium-startup-taint",
		Produced: Produced{BySandbox, "internal/e2e TestWhy/startup-taint"},
	},
	{
		ID: "networks-pending", Symptom: "condition croft.dev/PodNetworksReady of the node",
		Signature: compileAny(`croft\.dev/PodNetworksReady=False`),
		Texts: []string{
			FormatCondition("croft.dev/PodNetworksReady", "False", "PluginsPending", "DaemonSet kube-system/whereabouts has no pod on the node, since it does not tolerate the taint croft.node-restriction.kubernetes.io/pool=telco:NoExecute"),
			FormatCondition("croft.dev/PodNetworksReady", "False", "LinksPending", "LinkMissing: the node has no interface for n4"),
		},
		Cause: "the node's secondary networks are not ready, and so croft's operator leaves the startup taint on it: an interface is not attached, " +
			"croft's agent has not set it up, or Multus or whereabouts is not Ready there",
		Fix: "see the reason. A DaemonSet without a pod on the node must tolerate the pool's taints; one that the nodes do not need is " +
			"left out with `croft install --network-plugins`, or `agent.plugins` of the chart",
		Run: "kubectl describe nodes -l croft.dev/secondary-networks=true",
		Who: Platform, Link: "docs/how-to/networks.md",
		Produced: Produced{BySandbox, "internal/why TestNetworksAwaited; internal/e2e TestAWSNetworks"},
	},
	{
		ID: "undeclared-taint", Symptom: "the node: a taint that neither its NodeClaim nor Kubernetes has set",
		Cause: "something taints new nodes, and the pool does not declare the taint: Karpenter thinks that pods will fit, they do not, and it makes new nodes for ever",
		Fix:   "declare the taint in the Pool's `startupTaints` if it goes away by itself; otherwise keep it off the pool's nodes. A NodePool of your own has `startupTaints` and `taints`",
		Who:   Platform, Link: "https://karpenter.sh/docs/concepts/nodepools/#spectemplatespecstartuptaints",
		Produced: Produced{BySandbox, "internal/e2e TestDoctor/undeclared-taint"},
	},
	{
		ID: "cni-not-initialized", Symptom: "condition Ready of the node",
		Signature: compileAny(`cni plugin not initialized`, `cni config uninitialized`),
		Texts:     []string{FormatCondition("Ready", "False", "KubeletNotReady", "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized")},
		Cause:     "the network plugin has not started on the node",
		Fix:       "look at its pods there (`kubectl get pods -n kube-system -o wide`; on EKS aws-node): the nodes' role, or the plugin's own, needs AmazonEKS_CNI_Policy, and the DaemonSet must tolerate the pool's taint",
		Who:       Platform, Link: karpenterDocs + "#node-notready",
		Produced: Produced{BySandbox, "internal/e2e TestWhy/without-kubelet: the node's condition is written as kubelet writes it"},
	},
	{
		ID: "resource-not-registered", Symptom: "condition Initialized of the NodeClaim",
		Signature: compileAny(`ResourceNotRegistered`),
		Texts:     []string{FormatCondition("Initialized", "Unknown", "ResourceNotRegistered", `Resource "nvidia.com/gpu" was requested but not registered`)},
		Cause:     "a device that pods ask for is not offered by the node: its device plugin does not run there",
		Fix:       "let the device plugin's DaemonSet run on the pool: it must tolerate the pool's taint",
		Who:       Platform, Link: kubeDocs + "extend-kubernetes/compute-storage-net/device-plugins/",
		Produced: Produced{ByRecord, "text of Karpenter v1.14; kwok's nodes have no devices"},
	},
	{
		ID: "pod-address", Symptom: "event FailedCreatePodSandBox of the pod",
		Signature: compileAny(`failed to assign an IP address to container`),
		Texts:     []string{`Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "8c2d": plugin type="aws-cni" name="aws-cni" failed (add): add cmd: failed to assign an IP address to container`},
		Cause:     "the node has no address left for the pod: the subnet is full, or the node takes more pods than its interfaces have addresses",
		Fix:       "use larger subnets or prefix delegation; lower `kubelet.maxPods` of the node class",
		Who:       Platform, Link: karpenterDocs + "#maxpods-is-greater-than-the-nodes-supported-pod-density",
		Produced: Produced{ByRecord, "text of the Amazon VPC CNI; kwok's nodes have no network"},
	},
	{
		ID: "network-range-full", Symptom: "event FailedCreatePodSandBox of the pod; condition AddressesAvailable of the SecondaryNetwork",
		Signature: compileAny(`Could not allocate IP in range`, `AddressesAvailable=False RangeFull`),
		Texts: []string{
			`Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "8c2d": plugin type="multus" name="multus" failed (add): [core/web-1/5f0c:n4]: error adding container to network "n4": error at storage engine: Could not allocate IP in range: ip: 10.0.4.32 / - 10.0.4.63 / range: 10.0.4.0/24 / excludeRanges: []`,
			FormatCondition("AddressesAvailable", "False", "RangeFull", "us-west-2a: 32 of 32 addresses of 10.0.4.32/27 are used"),
		},
		Cause: "a secondary network has no address left for the pod: all of the zone are used or, with `prefixesPerNode`, all of the node's own. " +
			"The pod waits until another gives its address back",
		Fix: "widen `podCIDR` of the zone and the subnet's reservation (`croft networks plan`), let the pods run in other zones or, with " +
			"`prefixesPerNode`, on more nodes, or run fewer of them. Addresses of pods that are gone come back by whereabouts' own reconciler",
		Run: "kubectl describe secondarynetworks",
		Who: Platform, Link: "docs/how-to/networks.md",
		Produced: Produced{BySandbox, "internal/e2e TestMultus/NoAddressLeft, by the real whereabouts; internal/why TestRangeFull"},
	},
}
