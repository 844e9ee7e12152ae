package migrate

// writtenOut says what croft writes of a class where nobody said anything, and
// what that changes.
func writtenOut(spec Field, to target) {
	if hops := spec.At("metadataOptions", "httpPutResponseHopLimit"); !spec.At("metadataOptions").Found() {
		spec.At("metadataOptions").UnsetChanged(to.at("metadataOptions"), "no metadataOptions: %s", hopsOne)
	} else if !hops.Found() {
		hops.UnsetChanged(to.at("metadataOptions"), "none: %s", hopsOne)
	}
	spec.At("associatePublicIPAddress").unsetAs(to.at("associatePublicIPAddress"),
		"none: the subnet said whether nodes have public addresses; croft says false, so write true if they reach the cluster through one")
	for _, disk := range spec.At("blockDeviceMappings").Items() {
		volume := disk.At("ebs")
		if !volume.At("snapshotID").Found() {
			volume.At("encrypted").unsetAs(to.at("blockDeviceMappings"), "none: the account's setting decided; croft says true")
		}
		volume.At("volumeType").unsetAs(to.at("blockDeviceMappings"), "none: it was gp2; croft says gp3, which is faster for less")
		volume.At("deleteOnTermination").unsetAs(to.at("blockDeviceMappings"), "none: the image decided; croft says true, so that no volume outlives its node")
	}
}

// unsetAs is UnsetChanged for a field that was not written.
func (f Field) unsetAs(to, message string) {
	if !f.Found() {
		f.UnsetChanged(to, "%s", message)
	}
}
