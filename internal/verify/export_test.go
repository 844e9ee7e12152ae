package verify

import "croft.dev/croft/internal/estate"

// Parts are what a Scratch is made of, for the tests that take it apart.
func (s *Scratch) Parts() (platform *estate.Platform, by, on *estate.Tenant) {
	return s.platform, s.by, s.on
}
