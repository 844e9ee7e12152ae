package quotaplan

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// most is the maximum amount. Larger amounts are treated as equal to it: it is far more than
// any cluster has, and small enough that a hundred of them can be added up.
const most = int64(1) << 56

// measure converts amounts of one resource to whole numbers: CPU in thousandths, everything
// else in ones, since the API server does not accept half an object.
type measure struct {
	milli  bool
	format resource.Format
	// grain is the step by which shares differ, so that they stay readable.
	grain int64
}

func newMeasure(name corev1.ResourceName, total resource.Quantity) measure {
	m := measure{format: total.Format, grain: 1}
	if m.milli = strings.HasSuffix(string(name), "cpu"); m.milli {
		return m
	}
	if total.Format == resource.BinarySI && total.Cmp(*resource.NewQuantity(1<<30, resource.BinarySI)) >= 0 {
		m.grain = 1 << 20
	}
	return m
}

// roundDown rounds down, for amounts that are granted.
func (m measure) roundDown(q resource.Quantity) int64 {
	n := m.roundUp(q)
	if whole := m.toQuantity(n); whole.Cmp(q) > 0 && n < most {
		n--
	}
	return n
}

// roundUp rounds up, for amounts that are taken.
func (m measure) roundUp(q resource.Quantity) int64 {
	switch limit := m.toQuantity(most); {
	case q.Sign() <= 0:
		return 0
	case q.Cmp(limit) >= 0:
		return most
	case m.milli:
		return q.MilliValue()
	default:
		return q.Value()
	}
}

func (m measure) toQuantity(n int64) resource.Quantity {
	if m.milli {
		return *resource.NewMilliQuantity(n, m.format)
	}
	return *resource.NewQuantity(n, m.format)
}

// splitEvenly divides an amount into n parts that differ by no more than a grain and add up to it.
// The first parts get the remainder.
func (m measure) splitEvenly(amount int64, n int) []int64 {
	all := make([]int64, n)
	grains, given := amount/m.grain, int64(0)
	for i := range all {
		all[i] = (grains/int64(n) + toInt(i < int(grains%int64(n)))) * m.grain
		given += all[i]
	}
	if n > 0 {
		all[0] += amount - given
	}
	return all
}

func toInt(one bool) int64 {
	if one {
		return 1
	}
	return 0
}
