package draft

import "slices"

// Distinct are the values of a list without repetitions.
func Distinct[T comparable](list []T) []T {
	var all []T
	for _, v := range list {
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

// Typed is Distinct, as values of a type of strings.
func Typed[S ~string](list []string) []S {
	var all []S
	for _, v := range Distinct(list) {
		all = append(all, S(v))
	}
	return all
}
