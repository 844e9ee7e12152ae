package policy

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
)

// inTree are the volume types that are refused by default, each with an example. The ID, the
// address or the path is enough to read the data.
var inTree = []struct {
	name, mounts string
	source       corev1.VolumeSource
}{
	{"aws-disk", "a disk of the AWS account by its ID", corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-0123456789abcdef0"}}},
	{"gce-disk", "a disk of the Google Cloud project by its name", corev1.VolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "disk-of-another"}}},
	{"azure-disk", "a disk of the Azure subscription by its URI", corev1.VolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{
		DiskName: "disk-of-another", DataDiskURI: "/subscriptions/s/resourcegroups/g/providers/microsoft.compute/disks/d", Kind: ptr.To(corev1.AzureManagedDisk),
	}}},
	{"azure-share", "a file share of a storage account", corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{SecretName: "account", ShareName: "share-of-another"}}},
	{"openstack-disk", "a disk of the OpenStack project by its ID", corev1.VolumeSource{Cinder: &corev1.CinderVolumeSource{VolumeID: "573e024d-5235-49ce-8332-be1576d323f8"}}},
	{"vsphere-disk", "a disk of the vSphere data store by its path", corev1.VolumeSource{VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{VolumePath: "[datastore] kubevols/disk-of-another"}}},
	{"portworx-volume", "a Portworx volume by its ID", corev1.VolumeSource{PortworxVolume: &corev1.PortworxVolumeSource{VolumeID: "volume-of-another"}}},
	{"photon-disk", "a disk of Photon by its ID", corev1.VolumeSource{PhotonPersistentDisk: &corev1.PhotonPersistentDiskVolumeSource{PdID: "disk-of-another"}}},
	{"scaleio-volume", "a ScaleIO volume by its name", corev1.VolumeSource{ScaleIO: &corev1.ScaleIOVolumeSource{
		Gateway: "https://gateway.example.com", System: "s", VolumeName: "volume-of-another", SecretRef: &corev1.LocalObjectReference{Name: "s"},
	}}},
	{"storageos-volume", "a StorageOS volume by its name", corev1.VolumeSource{StorageOS: &corev1.StorageOSVolumeSource{VolumeName: "volume-of-another"}}},
	{"flocker-volume", "a Flocker volume by its name", corev1.VolumeSource{Flocker: &corev1.FlockerVolumeSource{DatasetName: "volume-of-another"}}},
	{"nfs-export", "an NFS export, from the network of the node", corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "10.0.0.7", Path: "/"}}},
	{"iscsi-disk", "an iSCSI disk, from the network of the node", corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "10.0.0.7:3260", IQN: "iqn.2001-04.com.example:storage.disk1"}}},
	{"fibre-channel-disk", "a disk of the storage network of the node", corev1.VolumeSource{FC: &corev1.FCVolumeSource{TargetWWNs: []string{"500a0982991b8dc5"}, Lun: ptr.To[int32](0)}}},
	{"flex-volume", "a volume that a driver on the node mounts, as root", corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{Driver: "example.com/driver"}}},
	{"git-repository", "a repository that git on the node fetches, as root (CVE-2024-10220)", corev1.VolumeSource{GitRepo: &corev1.GitRepoVolumeSource{Repository: "https://git.example.com/repo.git"}}},
	{"gluster-volume", "a GlusterFS volume, from the network of the node", corev1.VolumeSource{Glusterfs: &corev1.GlusterfsVolumeSource{EndpointsName: "gluster", Path: "volume-of-another"}}},
	{"ceph-image", "a Ceph image, from the network of the node", corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{CephMonitors: []string{"10.0.0.7:6789"}, RBDImage: "image-of-another"}}},
	{"ceph-file-system", "a Ceph file system, from the network of the node", corev1.VolumeSource{CephFS: &corev1.CephFSVolumeSource{Monitors: []string{"10.0.0.7:6789"}}}},
	{"quobyte-volume", "a Quobyte volume, from the network of the node", corev1.VolumeSource{Quobyte: &corev1.QuobyteVolumeSource{Registry: "10.0.0.7:7861", Volume: "volume-of-another"}}},
}

// findStorageClass returns a class that the tenant may use.
func (s scene) findStorageClass() string {
	for _, name := range s.attacker.Allowances.StorageClasses {
		if name != "*" && name != "" {
			return name
		}
	}
	return "croft-verify"
}

// buildVolumeAttacks are mounted without claims.
func (s scene) buildVolumeAttacks() []attack.Attack {
	var all []attack.Attack
	mounting := func(sources ...corev1.VolumeSource) func(*corev1.PodSpec) {
		return func(p *corev1.PodSpec) {
			for i, source := range sources {
				p.Volumes = append(p.Volumes, corev1.Volume{Name: "v" + string(rune('a'+i)), VolumeSource: source})
			}
		}
	}
	pod := func(name string, edit func(*corev1.PodSpec)) client.Object {
		return s.makePod(name, func(p *corev1.Pod) { edit(&p.Spec) })
	}
	// The restricted level refuses these types, too, and is evaluated first.
	by := attack.ByPolicy(admissionpolicy.PodsPolicy, VolumeTypesRule)
	restricted := s.attacker.PodSecurity == v1alpha1.PodSecurityRestricted
	if restricted {
		by = attack.ByPodSecurity
	}
	for _, v := range inTree {
		name, kind := "mount-"+v.name, findVolumeType(v.source)
		switch {
		case !slices.Contains(s.attacker.Allowances.VolumeTypes, kind) && !slices.Contains(s.attacker.Allowances.VolumeTypes, "*"):
			all = append(all, attack.NewCreate(name, "mount "+v.mounts, by, pod(name, mounting(v.source))))
		case !restricted:
			name += "-as-allowed"
			all = append(all, attack.NewCreate(name, "mount "+v.mounts+", as the tenant may", attack.Nobody, pod(name, mounting(v.source))))
		}
	}
	if !slices.Contains(s.attacker.Allowances.VolumeTypes, "*") && !slices.Contains(s.attacker.Allowances.VolumeTypes, "nfs") {
		for _, o := range attack.NewPodControllers(s.own, "croft-mount-nfs", attack.NewTemplate(func(t *corev1.PodTemplateSpec) {
			mounting(corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "10.0.0.7", Path: "/"}})(&t.Spec)
		})) {
			kind := o.GetObjectKind().GroupVersionKind().Kind
			all = append(all, attack.NewCreate("mount-nfs-export-in-"+strings.ToLower(kind), "mount an NFS export by a "+kind,
				attack.ByWarning(admissionpolicy.PodTemplatesPolicy, VolumeTypesRule), o))
		}
	}
	all = attack.WithReason("the disk, or the server, may hold another tenant's data, and no NetworkPolicy applies on a node", []string{podSecurityStandards}, all...)

	harmless := []corev1.VolumeSource{
		{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
		{Secret: &corev1.SecretVolumeSource{SecretName: "password"}},
		{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "password"}}}}}},
		{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{Path: "name", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}},
		{EmptyDir: &corev1.EmptyDirVolumeSource{}},
		{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}},
		{Image: &corev1.ImageVolumeSource{Reference: attack.ChooseImage(&s.attacker.Allowances), PullPolicy: corev1.PullAlways}},
		{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: s.makeClaimSpec()}}},
	}
	return append(all,
		attack.NewCreate("mount-volumes", "mount a volume of each type that is one's own", attack.Nobody, pod("mount-volumes", mounting(harmless...))),
		attack.NewCreate("mount-volumes-in-template", "mount a volume of each type that is one's own by a Deployment", attack.Nobody,
			s.makeDeployment("mount-volumes-in-template", func(t *corev1.PodTemplateSpec) { mounting(harmless...)(&t.Spec) })))
}

// findVolumeType returns the API's name for a volume's type.
func findVolumeType(source corev1.VolumeSource) v1alpha1.VolumeType {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&source)
	if err != nil {
		return ""
	}
	for name := range fields {
		return v1alpha1.VolumeType(name)
	}
	return ""
}

func (s scene) makeClaimSpec() corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		StorageClassName: ptr.To(s.findStorageClass()), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
}

// exceedVolumeSize returns more storage than a single claim may request.
func (s scene) exceedVolumeSize() string {
	size := s.attacker.Allowances.MaxVolumeSize.DeepCopy()
	size.Add(resource.MustParse("1Gi"))
	return size.String()
}

// makeVolumeClaim returns a claim for a volume that the tenant may use.
func (s scene) makeVolumeClaim(name string, edits ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{TypeMeta: makeCoreMeta("PersistentVolumeClaim"), ObjectMeta: s.makeMeta(name), Spec: s.makeClaimSpec()}
	for _, edit := range edits {
		edit(c)
	}
	return c
}

// buildClaimAttacks claim a volume of the cluster's default class. In a real tenant, this class may be
// allowed, so the attack creates another object first, and then runs on scratch tenants only.
func (s scene) buildClaimAttacks() []attack.Attack {
	classes := s.attacker.Allowances.StorageClasses
	if slices.Contains(classes, "*") || slices.Contains(classes, "") {
		return nil
	}
	none := attack.NewCreate("claim-without-class", "claim a volume of no class, where the cluster's default class is not the tenant's",
		attack.ByPolicy(ClaimsPolicy, StorageClassRule),
		s.makeVolumeClaim("claim-without-class", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = nil }))
	none.Setup = []client.Object{s.makeVolumeClaim("claim-beside-without-class")}
	return attack.WithReason("a volume may hold another tenant's data, or exceed the tenant's allowance", nil, none)
}
