package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/walls/wall/network"
)

// testConsent fails if packets pass to another port than the one to which two tenants agreed, or
// from a third tenant; if one tenant alone opens a connection; or if a connection does not close
// at its end.
func (c *cluster) testConsent(t *testing.T) {
	const allowed, other = 443, 80
	const callers = "network: {callers: {blue: {ports: [443]}}}, "
	const calls = "network: {calls: {red: {}}}, "
	declare := func(red, blue string) {
		t.Helper()
		c.applyContent(t, strings.NewReplacer("red: {", "red: {"+red, "blue: {", "blue: {"+blue).Replace(packetTenants))
	}
	assertOpen := func(port int, agreed ...connection) {
		t.Helper()
		if wrong := findUndeclared(c.expectMatrix(t, port, "tcp"), agreed...); len(wrong) > 0 {
			t.Errorf("port %d: connections that the declaration does not have: %v", port, wrong)
		}
	}
	declare(callers, "")
	assertOpen(allowed)
	declare("", calls)
	assertOpen(allowed)

	declare(callers, calls)
	for _, namespace := range packetNamespaces["red"] {
		awaitCondition(t, moments, "the policy for the caller", func(ctx context.Context) error {
			key := client.ObjectKey{Namespace: namespace, Name: network.CallerPolicy + "-blue"}
			return c.admin.Get(ctx, key, &networkingv1.NetworkPolicy{})
		})
	}
	// The servers listen on both ports: between the namespaces of red, both must be open.
	assertOpen(allowed, connection{"blue", "red", "tcp"}, connection{"blue", "red-ci", "tcp"})
	assertOpen(other)

	end := time.Now().Add(20 * time.Second).Truncate(time.Second)
	declare(strings.Replace(callers, "[443]", "[443], until: '"+end.UTC().Format(time.RFC3339)+"'", 1), calls)
	address := "tcp/" + c.listAddresses(t, "red", allowed)[0]
	awaitCondition(t, moments, "the connection to close at its end", func(context.Context) error {
		outcome, after := c.dialFrom(t, "blue", address)[address], time.Since(end)
		switch {
		case outcome == "open":
			return fmt.Errorf("it is open %s after its end", after)
		case after < 0:
			t.Errorf("it is closed %s before its end: %s", -after, outcome)
		default:
			t.Logf("closed at most %s after the end", after)
		}
		return nil
	})
	assertOpen(allowed)
	c.applyContent(t, packetTenants)
}
