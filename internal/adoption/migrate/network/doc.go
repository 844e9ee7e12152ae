// Package network reads network policies, in every dialect, and reports the equivalent
// of each in croft's network wall.
package network
