// Package capsule reads Capsule's Tenants (capsule.clastix.io).
package capsule
