// Package prove contains the proofs that the walls hold: attacks on a cluster, packets between
// pods, trials of a team's manifests, and signed attestations.
//
// It may import: declare, rules, observe, walls, operate.
package prove
