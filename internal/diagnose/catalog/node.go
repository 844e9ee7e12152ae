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
		Cause: "the instance runs, and its kubelet does not join the cluster; Karpenter gives up after 15 minutes and launches another instance",
		Fix:   "grant the nodes' role access: by an access entry of type EC2_LINUX, or a line in aws-auth; then check that the subnets reach the API server, and the node's user data",
		Who:   Platform, Link: karpenterDocs + "#node-launchreadiness",
	},
	{
		ID: "unregistered-taint-missing", Symptom: "event UnregisteredTaintMissing of the NodeClaim; Karpenter's log",
		Signature: compileAny(`[Mm]issing (karpenter.sh/unregistered )?taint,? (which )?prevents registration[- ]related race`),
		Texts: []string{
			`missing taint prevents registration-related race conditions on Karpenter-managed nodes`,
			`Missing karpenter.sh/unregistered taint which prevents registration related race conditions on Karpenter-managed nodes`,
		},
		Cause: "the node joined without the taint that keeps pods off it until Karpenter has set its labels and taints: pods of other tenants could run there first",
		Fix:   "a custom image's kubelet must register with `--register-with-taints=karpenter.sh/unregistered:NoExecute`",
		Who:   Platform, Link: karpenterDocs + "#node-notready",
	},
	{
		ID: "startup-taint", Symptom: "condition Initialized of the NodeClaim; the node, if the taint came back later",
		Signature: compileAny(`StartupTaint .* still exists`, `KnownEphemeralTaint .* still exists`),
		Texts: []string{
			FormatCondition("Initialized", "Unknown", "StartupTaintsExist", `StartupTaint "example.org/agent:NoSchedule" still exists`),
			FormatCondition("Initialized", "Unknown", "KnownEphemeralTaintsExist", `KnownEphemeralTaint "node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule" still exists`),
		},
		Cause: "the program that removes the startup taint is not ready on the node; or it removed the taint before the node had registered, and Karpenter added it again (karpenter#1479, #1772)",
		Fix:   "let the DaemonSet that removes the taint run on the node (it must tolerate the pool's taint), and let it remove the taint only after the node has the label karpenter.sh/registered=true; or remove the taint from the Pool's `startupTaints`",
		Who:   Platform, Link: "https://karpenter.sh/docs/concepts/nodepools/#cilium-startup-taint",
	},
	{
		ID: "networks-pending", Symptom: "condition croft.dev/PodNetworksReady of the node",
		Signature: compileAny(`croft\.dev/PodNetworksReady=False`),
		Texts: []string{
			FormatCondition("croft.dev/PodNetworksReady", "False", "PluginsPending", "DaemonSet kube-system/whereabouts has no pod on the node, since it does not tolerate the taint croft.node-restriction.kubernetes.io/pool=telco:NoExecute"),
			FormatCondition("croft.dev/PodNetworksReady", "False", "LinksPending", "LinkMissing: the node has no interface for n4"),
		},
		Cause: "the node's secondary networks are not ready, and croft's operator therefore leaves the startup taint on it: an interface is not attached, croft's agent has not set it up, or Multus or whereabouts is not Ready there",
		Fix:   "check the reason. A DaemonSet without a pod on the node must tolerate the pool's taints; `croft install --network-plugins`, or `agent.plugins` of the chart, excludes DaemonSets that the nodes do not need",
		Run:   "kubectl describe nodes -l croft.dev/secondary-networks=true",
		Who:   Platform, Link: "docs/how-to/networks.md",
	},
	{
		ID: "undeclared-taint", Symptom: "a taint of the node that neither its NodeClaim nor Kubernetes has set",
		Cause: "a component taints new nodes, and the pool does not declare the taint: Karpenter expects pods to fit, they do not, and it creates new nodes without end",
		Fix:   "if the component removes the taint later, declare it in the Pool's `startupTaints`; otherwise keep it off the pool's nodes. For a NodePool of your own, use its `startupTaints` and `taints`",
		Who:   Platform, Link: "https://karpenter.sh/docs/concepts/nodepools/#spectemplatespecstartuptaints",
	},
	{
		ID: "cni-not-initialized", Symptom: "condition Ready of the node",
		Signature: compileAny(`cni plugin not initialized`, `cni config uninitialized`),
		Texts:     []string{FormatCondition("Ready", "False", "KubeletNotReady", "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized")},
		Cause:     "the network plugin has not started on the node",
		Fix:       "check the plugin's pods on the node (`kubectl get pods -n kube-system -o wide`; on EKS aws-node): the nodes' role, or the plugin's own, needs AmazonEKS_CNI_Policy, and the DaemonSet must tolerate the pool's taint",
		Who:       Platform, Link: karpenterDocs + "#node-notready",
	},
	{
		ID: "resource-not-registered", Symptom: "condition Initialized of the NodeClaim",
		Signature: compileAny(`ResourceNotRegistered`),
		Texts:     []string{FormatCondition("Initialized", "Unknown", "ResourceNotRegistered", `Resource "nvidia.com/gpu" was requested but not registered`)},
		Cause:     "pods request a device that the node does not offer: the device plugin does not run there",
		Fix:       "let the device plugin's DaemonSet run on the pool: it must tolerate the pool's taint",
		Who:       Platform, Link: kubeDocs + "extend-kubernetes/compute-storage-net/device-plugins/",
	},
	{
		ID: "pod-address", Symptom: "event FailedCreatePodSandBox of the pod",
		Signature: compileAny(`failed to assign an IP address to container`),
		Texts:     []string{`Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "8c2d": plugin type="aws-cni" name="aws-cni" failed (add): add cmd: failed to assign an IP address to container`},
		Cause:     "the node has no free address for the pod: the subnet is full, or the node allows more pods than its interfaces have addresses",
		Fix:       "use larger subnets or prefix delegation; lower `kubelet.maxPods` of the node class",
		Who:       Platform, Link: karpenterDocs + "#maxpods-is-greater-than-the-nodes-supported-pod-density",
	},
	{
		ID: "network-range-full", Symptom: "event FailedCreatePodSandBox of the pod; condition AddressesAvailable of the SecondaryNetwork",
		Signature: compileAny(`Could not allocate IP in range`, `AddressesAvailable=False RangeFull`),
		Texts: []string{
			`Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "8c2d": plugin type="multus" name="multus" failed (add): [core/web-1/5f0c:n4]: error adding container to network "n4": error at storage engine: Could not allocate IP in range: ip: 10.0.4.32 / - 10.0.4.63 / range: 10.0.4.0/24 / excludeRanges: []`,
			FormatCondition("AddressesAvailable", "False", "RangeFull", "us-west-2a: 32 of 32 addresses of 10.0.4.32/27 are used"),
		},
		Cause: "a secondary network has no free address for the pod: all addresses of the zone are used or, with `prefixesPerNode`, all of the node. The pod waits until another pod releases an address",
		Fix:   "enlarge `podCIDR` of the zone and the subnet's reservation (`croft networks plan`), let the pods run in other zones or, with `prefixesPerNode`, on more nodes, or run fewer pods. The reconciler of whereabouts releases the addresses of deleted pods",
		Run:   "kubectl describe secondarynetworks",
		Who:   Platform, Link: "docs/how-to/networks.md",
	},
}
