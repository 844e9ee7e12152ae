package nodeclass

import (
	"croft.dev/croft/internal/migrate/source"
)

// writtenOut reports croft's defaults for unset fields of a class, and the resulting changes.
func writtenOut(spec source.Field, to target) {
	if hops := spec.At("metadataOptions", "httpPutResponseHopLimit"); !spec.At("metadataOptions").Found() {
		spec.At("metadataOptions").UnsetChanged(to.at("metadataOptions"), "no metadataOptions: %s", hopsOne)
	} else if !hops.Found() {
		hops.UnsetChanged(to.at("metadataOptions"), "none: %s", hopsOne)
	}
	unsetAs(spec.At("associatePublicIPAddress"), to.at("associatePublicIPAddress"),
		"none: the subnet said whether nodes have public addresses; croft says false, so write true if they reach the cluster through one")
	for _, disk := range spec.At("blockDeviceMappings").Items() {
		volume := disk.At("ebs")
		if !volume.At("snapshotID").Found() {
			unsetAs(volume.At("encrypted"), to.at("blockDeviceMappings"), "none: the account's setting decided; croft says true")
		}
		unsetAs(volume.At("volumeType"), to.at("blockDeviceMappings"), "none: it was gp2; croft says gp3, which is faster for less")
		unsetAs(volume.At("deleteOnTermination"), to.at("blockDeviceMappings"), "none: the image decided; croft says true, so that no volume outlives its node")
	}
}

// unsetAs calls UnsetChanged if the field is not set.
func unsetAs(f source.Field, to, message string) {
	if !f.Found() {
		f.UnsetChanged(to, "%s", message)
	}
}
