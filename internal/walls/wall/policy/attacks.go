package policy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/attack"
)

// scene has the tenants and hosts of the attacks.
type scene struct {
	platform         *estate.Platform
	attacker, target *estate.Tenant
	// own is a namespace of the attacker, and other a namespace of the target.
	own, other string
	// host is a host that the attacker may serve, or "". otherHost is a host that the target
	// may serve, or that is granted to no tenant.
	host, otherHost string
}

func newScene(p *estate.Platform, by, on *estate.Tenant) scene {
	s := scene{platform: p, attacker: by, target: on, own: by.Namespaces[0], other: on.Namespaces[0], otherHost: "www.example.org"}
	if len(by.Domains) > 0 {
		s.host = chooseHost(by.Domains[0])
	}
	if len(on.Domains) > 0 {
		s.otherHost = chooseHost(on.Domains[0])
	}
	return s
}

func (s scene) makeMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.own, Name: "croft-" + name}
}

// Attacks try to escape from the pod, to take more than the tenant's share, to impersonate
// other users and components, and to change croft's objects.
func (Wall) Attacks(p *estate.Platform, by, on *estate.Tenant) []attack.Attack {
	s := newScene(p, by, on)
	var all []attack.Attack
	for _, attacks := range [][]attack.Attack{
		s.buildEscapeAttacks(), s.buildPodAttacks(), s.buildShareAttacks(), s.buildSizeAttacks(), s.buildVolumeAttacks(),
		s.buildClaimAttacks(), s.buildRequestAttacks(), s.buildAddonMirrors(), s.buildControlAttacks(),
		s.buildSharingMirrors(), s.buildIdentityMirrors(), s.buildTokenAttacks(), s.buildSourceMirrors(),
		s.buildBoundsAttacks(), s.buildOutsideMirrors(), s.buildFrozenAttacks(), s.buildFileAttacks(),
	} {
		all = append(all, attacks...)
	}
	return all
}

// chooseHost returns a host that a domain grants.
func chooseHost(domain string) string {
	if domain[0] == '*' {
		return "www" + domain[1:]
	}
	return domain
}
