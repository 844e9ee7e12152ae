package e2e

import (
	"testing"

	"croft.dev/croft/internal/rules/admissionpolicy"
)

// install installs croft's CRDs, rights and policies, and returns the operator's kubeconfig.
func (c *cluster) install(t testing.TB) (kubeconfig string) {
	t.Helper()
	c.croft(t, "install").exits(t, 0)
	return c.kubeconfigOf(t, admissionpolicy.OperatorUser, "system:serviceaccounts", "system:serviceaccounts:croft-system")
}

// operate starts an operator outside of the sandbox's supervision: an ordinary process, with
// only the rights that `croft install` gives to the operator.
func (c *cluster) operate(t testing.TB, kubeconfig string) *process {
	t.Helper()
	return c.spawnCroft(t, "croft-of-the-test.log", "operator", "--kubeconfig", kubeconfig,
		"--health-addr", "0", "--metrics-addr", "0", "--leader-elect=false")
}
