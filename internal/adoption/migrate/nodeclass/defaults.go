package nodeclass

import (
	"croft.dev/croft/internal/adoption/migrate/source"
)

// reportDefaults reports croft's defaults for unset fields of a class, and the resulting changes.
func reportDefaults(spec source.Field, to target) {
	if hops := spec.At("metadataOptions", "httpPutResponseHopLimit"); !spec.At("metadataOptions").Found() {
		spec.At("metadataOptions").MarkUnsetChanged(to.at("metadataOptions"), "no metadataOptions: %s", hopsOne)
	} else if !hops.Found() {
		hops.MarkUnsetChanged(to.at("metadataOptions"), "none: %s", hopsOne)
	}
	reportUnset(spec.At("associatePublicIPAddress"), to.at("associatePublicIPAddress"),
		"not set: the subnet decided whether nodes have public addresses; croft sets false, so write true if nodes reach the cluster through one")
	for _, disk := range spec.At("blockDeviceMappings").Items() {
		volume := disk.At("ebs")
		if !volume.At("snapshotID").Found() {
			reportUnset(volume.At("encrypted"), to.at("blockDeviceMappings"), "not set: the account's setting decided; croft sets true")
		}
		reportUnset(volume.At("volumeType"), to.at("blockDeviceMappings"), "not set: the default was gp2; croft sets gp3, which is faster and cheaper")
		reportUnset(volume.At("deleteOnTermination"), to.at("blockDeviceMappings"), "not set: the image decided; croft sets true, so that volumes are deleted with their node")
	}
}

// reportUnset calls UnsetChanged if the field is not set.
func reportUnset(f source.Field, to, message string) {
	if !f.Found() {
		f.MarkUnsetChanged(to, "%s", message)
	}
}
