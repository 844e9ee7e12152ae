package policy

import (
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"croft.dev/croft/internal/rules/admissionpolicy"
)

// DevicesPolicy is the name of the policy on claims of devices.
const DevicesPolicy = "croft-device-claims"

// The names of the rules on devices, for claims and pods.
const (
	DeviceClassRule  = "device-class"
	DeviceBoundsRule = "device-bounds"
	DeviceClaimsRule = "device-claims"
)

// Bounds on the scheduler's work. The scheduler tries the devices of a node in all
// combinations until a pod's claims fit, and places no other pod meanwhile. The number of
// combinations multiplies with each request, each alternative of a request, each device and
// each claim of a pod, so these bounds are low. A request for all devices of a node has one
// combination.
const (
	maxDeviceRequests  = 4
	maxDevices         = 8
	maxDeviceSelectors = 4
	maxDeviceClaims    = 2
)

// deviceResource begins the name of the resource by which a container requests devices of a
// class without a claim of its own.
const deviceResource = "deviceclass.resource.kubernetes.io/"

// checkDevices allows claims for devices of the tenant's classes, within bounds. A claim's
// devices are immutable. Claims that the scheduler and the claims' controller create for pods
// are checked as well: their content comes from the tenant.
func checkDevices() admissionpolicy.Validating {
	allowedClass := `has(o.deviceClassName) && ` + matchAllowed("deviceClasses", "o.deviceClassName")
	bounds := strings.NewReplacer(
		"REQUESTS", strconv.Itoa(maxDeviceRequests),
		"DEVICES", strconv.Itoa(maxDevices),
		"SELECTORS", strconv.Itoa(maxDeviceSelectors),
	)
	return admissionpolicy.Validating{
		Name: DevicesPolicy,
		Resources: []admissionpolicy.Resource{{
			Group: "resource.k8s.io", Version: "*", Resources: []string{"resourceclaims", "resourceclaimtemplates"},
			Operations: []admissionv1.OperationType{admissionv1.Create},
		}},
		Variables: []admissionpolicy.Variable{
			{Name: "spec", Expression: `request.resource.resource == "resourceclaimtemplates" ?
				dyn(object).spec.spec : dyn(object).spec`},
			{Name: "requests", Expression: `has(variables.spec.devices) && has(variables.spec.devices.requests) ?
				variables.spec.devices.requests : []`},
			// The alternatives of each request. Requests of older API versions have no field
			// exactly.
			{Name: "options", Expression: `variables.requests.map(r,
				has(r.firstAvailable) && r.firstAvailable.size() > 0 ? r.firstAvailable :
				has(r.exactly) ? [r.exactly] : [r])`},
			{Name: "refused", Expression: `variables.options.filter(all, !all.all(o, ` + allowedClass + `))` +
				`.map(all, all.filter(o, !(` + allowedClass + `))[0])
				.map(o, has(o.deviceClassName) ? string(o.deviceClassName) : "no class")`},
			{Name: "alternatives", Expression: `variables.options.map(all, all.size()).sum()`},
			{Name: "devices", Expression: `variables.options.map(all,
				all.map(o, !has(o.count) ? 1 : int(o.count) > 1000000 ? 1000000 : int(o.count)).max()).sum()`},
		},
		Rules: []admissionpolicy.Rule{
			{
				Name: DeviceClassRule, Summary: "claims request only devices of the tenant's deviceClasses",
				Expression: `variables.refused.size() == 0`,
				Exception:  "policy.deviceClasses",
				Message: `"spec.devices.requests: " + ` + formatFirst("variables.refused", 3) +
					` + " is not among the device classes of tenant " + params.spec.tenant + ": " + ` +
					formatAllowed("deviceClasses") + ` + "; a platform admin allows others by policy.deviceClasses"`,
			},
			{
				Name: DeviceBoundsRule,
				Summary: bounds.Replace("a claim has at most REQUESTS requests, alternatives counted, " +
					"for at most DEVICES devices together, or for all of a node, " +
					"with at most SELECTORS selectors each"),
				Expression: bounds.Replace(`variables.alternatives <= REQUESTS && variables.devices <= DEVICES &&
					variables.options.all(all, all.all(o, !has(o.selectors) || o.selectors.size() <= SELECTORS))`),
				Message: bounds.Replace(`"spec.devices.requests: ` +
					`a claim may have REQUESTS requests, alternatives counted (this one has " +
					string(variables.alternatives) + "), for DEVICES devices together ("
					+ string(variables.devices) + "), with SELECTORS selectors each, ` +
					`since all pods of the cluster wait while the scheduler searches: request fewer, ` +
					`or all devices of a node by allocationMode: All"`),
			},
		},
	}
}

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
