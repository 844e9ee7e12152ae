package e2e

import (
	"testing"

	"croft.dev/croft/internal/rules/admissionpolicy"
)

// installCroft installs croft's CRDs, rights and policies, and returns the operator's kubeconfig.
func (c *cluster) installCroft(t testing.TB) (kubeconfig string) {
	t.Helper()
	c.runCroft(t, "install").expectExit(t, 0)
	return c.writeUserKubeconfig(t, admissionpolicy.OperatorUser, "system:serviceaccounts", "system:serviceaccounts:croft-system")
}

// startOperator starts an operator outside of the sandbox's supervision: an ordinary process, with
// only the rights that `croft install` gives to the operator.
func (c *cluster) startOperator(t testing.TB, kubeconfig string) *process {
	t.Helper()
	return c.startCroft(t, "croft-of-the-test.log", "operator", "--kubeconfig", kubeconfig,
		"--health-addr", "0", "--metrics-addr", "0", "--leader-elect=false")
}
