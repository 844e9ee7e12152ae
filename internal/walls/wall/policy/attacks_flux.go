package policy

import (
	"slices"
	"strings"

	"croft.dev/croft/internal/rules/attack"
)

// buildSourceMirrors fetch from each of the first hosts that the tenant is allowed.
func (s scene) buildSourceMirrors() []attack.Attack {
	hosts := s.attacker.Allowances.SourceHosts
	if slices.Contains(hosts, "*") {
		return nil
	}
	var all []attack.Attack
	for _, h := range hosts[:min(4, len(hosts))] {
		h = strings.Replace(h, "*", "git", 1)
		all = append(all, attack.NewCreate("fetch-from-named-"+strings.NewReplacer(".", "-", ":", "-").Replace(h),
			"have Flux fetch from a host that the tenant is allowed", attack.Nobody,
			attack.NewCustomObject("source.toolkit.fluxcd.io/v1", "GitRepository", s.own, "croft-fetch-from-named-host",
				map[string]any{"interval": "1m", "url": "https://" + h + "/own/app"})))
	}
	return attack.WithReason("Flux's controllers have network access that no tenant has", nil, all...)
}

// findSourceHost returns a host that the tenant's sources may be on.
func (s scene) findSourceHost() string {
	for _, h := range s.attacker.Allowances.SourceHosts {
		if below, ok := strings.CutPrefix(h, "*."); ok {
			return "git." + below
		}
		if h != "*" {
			return h
		}
	}
	return "git.example.org"
}
