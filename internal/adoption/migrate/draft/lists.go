package draft

import "slices"

// Distinct returns the values of a list without repetitions.
func Distinct[T comparable](list []T) []T {
	var all []T
	for _, v := range list {
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

// DistinctAs is like Distinct, and converts the values to a string type.
func DistinctAs[S ~string](list []string) []S {
	var all []S
	for _, v := range Distinct(list) {
		all = append(all, S(v))
	}
	return all
}
