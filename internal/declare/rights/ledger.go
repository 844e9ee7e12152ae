package rights

import (
	"fmt"
	"time"
)

// The ConfigMaps in which `croft ledger` keeps copies of the last hours. Their names are fixed, so that RBAC limits the
// ledger to them: other ConfigMaps in croft's namespace configure the proxy and the prices.
const (
	// CopiedHours is the number of hours, after which a later hour replaces a copy.
	CopiedHours = 48
	// CopyParts is the maximum number of ConfigMaps with one hour.
	CopyParts = 3
)

// NameCopy returns the name of the ConfigMap with a part of an hour. Parts are counted from 1.
func NameCopy(hour time.Time, part int) string {
	return nameCopy(int(hour.Unix()/int64(time.Hour/time.Second)%CopiedHours), part)
}

func nameCopy(slot, part int) string { return fmt.Sprintf("croft-ledger-hour-%02d-%d", slot, part) }

// ListCopyNames returns the names of all ConfigMaps with hours.
func ListCopyNames() []string {
	var names []string
	for slot := range CopiedHours {
		for part := range CopyParts {
			names = append(names, nameCopy(slot, part+1))
		}
	}
	return names
}
