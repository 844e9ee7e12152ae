package policy

import (
	"strconv"

	"croft.dev/croft/internal/rules/admissionpolicy"
)

// The names of the rules on the devices of pods.
const (
	DeviceClassRule  = "device-class"
	DeviceClaimsRule = "device-claims"
)

// maxDeviceClaims bounds the scheduler's work for one pod: see the rule device-bounds.
const maxDeviceClaims = 2

// deviceResource begins the name of the resource by which a container requests devices of a
// class without a claim of its own.
const deviceResource = "deviceclass.resource.kubernetes.io/"

// buildPodDeviceRules returns the rules for pods and templates.
func buildPodDeviceRules() []admissionpolicy.Rule {
	return []admissionpolicy.Rule{
		{
			Name: DeviceClassRule, Summary: "containers request only devices of the tenant's deviceClasses",
			FastPath:   `!variables.new`,
			Expression: `variables.usual || ` + matchEveryContainer(matchNoOtherDevices("c")),
			Exception:  "policy.deviceClasses",
			Message: `"spec.containers[].resources: a container requests devices of a class ` +
				`that is not among the tenant's deviceClasses: request one of these; ` +
				`a platform admin allows others by policy.deviceClasses"`,
		},
		{
			LoopFree:    true,
			Name:        DeviceClaimsRule,
			Summary:     "pods use at most " + strconv.Itoa(maxDeviceClaims) + " claims of devices",
			UsuallyFast: true, FastPath: `!has(variables.spec.resourceClaims)`,
			Expression: replaceWords(`!variables.new || variables.spec.resourceClaims.size() <= MOST`,
				"MOST", strconv.Itoa(maxDeviceClaims)),
			Message: replaceWords(`"spec.resourceClaims: a pod may use MOST claims of devices, `+
				`since all pods of the cluster wait while the scheduler searches: `+
				`request several devices in one claim"`,
				"MOST", strconv.Itoa(maxDeviceClaims)),
		},
	}
}

// matchNoOtherDevices returns the condition that a container requests no devices of other
// classes.
func matchNoOtherDevices(container string) string {
	return replaceWords(`(!has(OF.resources) || !has(OF.resources.limits) ||
		!OF.resources.limits.exists(k,
			k.startsWith("PREFIX") && !`+matchAllowed("deviceClasses", `k.substring(SIZE)`)+`))`,
		"OF", container, "PREFIX", deviceResource, "SIZE", strconv.Itoa(len(deviceResource)))
}
