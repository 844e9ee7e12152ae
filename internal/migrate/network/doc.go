// Package network reads network policies, in every dialect, and says what croft's network
// wall has in the place of each.
package network
