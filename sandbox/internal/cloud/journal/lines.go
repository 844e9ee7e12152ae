package journal

// amazonLinux2023 is a boot without custom user data. Its proportions are from
// internal/network/boot/testdata/al2023.journal.txt, without the 22 s of user data there.
var amazonLinux2023 = []line{
	{0, "kernel", 0, "Linux version 6.1.119-129.201.amzn2023.x86_64 (mockbuild@ip-10-0-48-120) (gcc (GCC) 11.4.1 20230605 " +
		"(Red Hat 11.4.1-2), GNU ld version 2.39-6.amzn2023.0.11) #1 SMP PREEMPT_DYNAMIC Tue Dec  3 21:07:35 UTC 2024"},
	{0, "kernel", 0, "Command line: BOOT_IMAGE=(hd0,gpt1)/boot/vmlinuz-6.1.119-129.201.amzn2023.x86_64 ro console=tty0 " +
		"console=ttyS0,115200n8 selinux=1 security=selinux quiet"},
	{154, "systemd", 1, "Starting nodeadm-config.service - EKS Nodeadm Config..."},
	{204, "cloud-init", 1688, "Cloud-init v. 22.2.2 running 'init-local' at CLOUDINIT."},
	{216, "systemd", 1, "Reached target network-pre.target - Preparation for Network."},
	{321, "systemd", 1, "Reached target network.target - Network."},
	{412, "nodeadm", 1693, `{"level":"info","ts":SECONDS,"caller":"init/init.go:49","msg":"Checking user is root.."}`},
	{552, "systemd", 1, "Finished nodeadm-config.service - EKS Nodeadm Config."},
	{581, "cloud-init", 1990, "Cloud-init v. 22.2.2 running 'init' at CLOUDINIT."},
	{590, "systemd", 1, "Reached target network-online.target - Network is Online."},
	{665, "cloud-init", 2190, "Cloud-init v. 22.2.2 running 'modules:config' at CLOUDINIT."},
	{689, "systemd", 1, "Starting cloud-final.service - Execute cloud user/final scripts..."},
	{705, "cloud-init", 2240, "Cloud-init v. 22.2.2 running 'modules:final' at CLOUDINIT."},
	{719, "cloud-init", 2240, "Cloud-init v. 22.2.2 finished at DATASOURCE"},
	{727, "systemd", 1, "Starting nodeadm-run.service - EKS Nodeadm Run..."},
	{742, "systemd", 1, "Starting containerd.service - containerd container runtime..."},
	{803, "systemd", 1, "Started containerd.service - containerd container runtime."},
	{894, "systemd", 1, "Starting kubelet.service - Kubernetes Kubelet..."},
	{897, "systemd", 1, "Started kubelet.service - Kubernetes Kubelet."},
	{901, "systemd", 1, "Finished nodeadm-run.service - EKS Nodeadm Run."},
	{959, "kubelet", 2731, `KLOG server.go:1256] "Started kubelet"`},
	{1000, "kubelet", 2731, `KLOG kubelet_node_status.go:78] "Successfully registered node" node="NODE"`},
	{1260, "containerd", 2590, `time="STAMP" level=info msg="CreateContainer within sandbox \"5e382601bbb4\" for ` +
		`&ContainerMetadata{Name:kube-proxy,Attempt:0,} returns container id \"fffcd549423d\""`},
	{1280, "containerd", 2590, `time="STAMP" level=info msg="CreateContainer within sandbox \"8a58ed36a913\" for ` +
		`&ContainerMetadata{Name:aws-vpc-cni-init,Attempt:0,} returns container id \"20462ce67a10\""`},
	{1730, "containerd", 2590, `time="STAMP" level=info msg="CreateContainer within sandbox \"8a58ed36a913\" for ` +
		`&ContainerMetadata{Name:aws-node,Attempt:0,} returns container id \"11c6dd5fdcbd\""`},
}

// bottlerocket is a boot with one bootstrap container. Its proportions are from
// internal/network/boot/testdata/bottlerocket.journal.txt. That journal of Bottlerocket does not
// contain the containers of the network plugin.
var bottlerocket = []line{
	{0, "kernel", 0, "Linux version 6.1.109 (builder@buildkitsandbox) (x86_64-bottlerocket-linux-gnu-gcc (Buildroot 2022.11.1) 11.3.0, " +
		"GNU ld (GNU Binutils) 2.38) #1 SMP PREEMPT_DYNAMIC Thu Oct 10 21:00:00 UTC 2024"},
	{111, "systemd", 1, "Reached target Host and Network Name Lookups."},
	{148, "systemd", 1, "Reached target Preparation for Network."},
	{148, "systemd", 1, "Reached target Network."},
	{222, "systemd", 1, "Reached target Network is Online."},
	{259, "systemd", 1, "Starting Bottlerocket userdata configuration system..."},
	{370, "systemd", 1, "Starting bootstrap container disks..."},
	{778, "systemd", 1, "Finished bootstrap container disks."},
	{815, "systemd", 1, "Starting containerd container runtime..."},
	{852, "systemd", 1, "Started containerd container runtime."},
	{889, "systemd", 1, "Starting Kubelet..."},
	{963, "kubelet", 1655, `KLOG server.go:1256] "Started kubelet"`},
	{965, "systemd", 1, "Started Kubelet."},
	{1000, "kubelet", 1655, `KLOG kubelet_node_status.go:76] "Successfully registered node" node="NODE"`},
}
