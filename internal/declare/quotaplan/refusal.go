package quotaplan

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Refusal is the API server's message about an object that exceeds a namespace's share. It
// names only the resources that are exceeded.
type Refusal struct{ Requested, Used corev1.ResourceList }

// longestRefusal is longer than any message of the API server about a quota.
const longestRefusal = 2048

var (
	// refusal follows the object's name, and an additional prefix if events are combined. croft
	// is the name of the ResourceQuota.
	refusal = regexp.MustCompile(`exceeded quota: croft, requested: ([^ ]+), used: ([^ ]+), limited: `)
	// amount matches a quantity in the API server's format. It limits the exponent: large ones
	// take long to compute, and tenants may forge the message.
	amount = regexp.MustCompile(`^[0-9]{1,19}(\.[0-9]{1,9})?([numkMGTPE]|[KMGTPE]i|e[0-9]{1,2})?$`)
)

// ParseRefusal parses a message. It returns false if the message is about something else.
func ParseRefusal(message string) (Refusal, bool) {
	if len(message) > longestRefusal {
		return Refusal{}, false
	}
	found := refusal.FindStringSubmatch(message)
	if found == nil {
		return Refusal{}, false
	}
	r := Refusal{parseAmounts(found[1]), parseAmounts(found[2])}
	return r, len(r.Demand()) > 0
}

// Demand returns the share that would have admitted the object.
func (r Refusal) Demand() corev1.ResourceList {
	demand := corev1.ResourceList{}
	for name, more := range r.Requested {
		if sum, ok := r.Used[name]; ok {
			sum.Add(more)
			demand[name] = sum
		}
	}
	return demand
}

func parseAmounts(text string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || !amount.MatchString(value) {
			continue
		}
		if q, err := resource.ParseQuantity(value); err == nil {
			list[corev1.ResourceName(name)] = q
		}
	}
	return list
}
