package nodeclass

import (
	"croft.dev/croft/internal/migrate/source"
)

// reportDefaults reports croft's defaults for unset fields of a class, and the resulting changes.
func reportDefaults(spec source.Field, to target) {
	if hops := spec.At("metadataOptions", "httpPutResponseHopLimit"); !spec.At("metadataOptions").Found() {
		spec.At("metadataOptions").MarkUnsetChanged(to.at("metadataOptions"), "no metadataOptions: %s", hopsOne)
	} else if !hops.Found() {
		hops.MarkUnsetChanged(to.at("metadataOptions"), "none: %s", hopsOne)
	}
	reportUnset(spec.At("associatePublicIPAddress"), to.at("associatePublicIPAddress"),
		"none: the subnet said whether nodes have public addresses; croft says false, so write true if they reach the cluster through one")
	for _, disk := range spec.At("blockDeviceMappings").Items() {
		volume := disk.At("ebs")
		if !volume.At("snapshotID").Found() {
			reportUnset(volume.At("encrypted"), to.at("blockDeviceMappings"), "none: the account's setting decided; croft says true")
		}
		reportUnset(volume.At("volumeType"), to.at("blockDeviceMappings"), "none: it was gp2; croft says gp3, which is faster for less")
		reportUnset(volume.At("deleteOnTermination"), to.at("blockDeviceMappings"), "none: the image decided; croft says true, so that no volume outlives its node")
	}
}

// reportUnset calls UnsetChanged if the field is not set.
func reportUnset(f source.Field, to, message string) {
	if !f.Found() {
		f.MarkUnsetChanged(to, "%s", message)
	}
}
