package oncall

import "time"

var copierAlerts = []Alert{
	{
		Name: "CroftSecretNotCopied", Expr: `sum by (source) (croft_secret_copies_failed) > 0`,
		For: 10 * time.Minute, Severity: Warning,
		Summary: "{{ $value }} copies of the Secret {{ $labels.source }} are missing or old",
		Meaning: "tenants' namespaces lack a Secret that croft.yaml declares, or have its earlier content. New pods that need it do " +
			"not start, or use expired credentials",
		Fix: "`croft doctor` names the reason: the Secret does not exist in the namespace `croft-secrets`, has a type or size that is " +
			"not copied, or a team has a Secret of its own with this name; or run `croft install --copy-secrets` again, which gives the " +
			"right to read a new source",
		Run: "croft doctor; kubectl -n croft-system logs deployment/croft-secrets",
	},
	{
		// Not absent(): a platform without copies of Secrets has no such series, and no problem.
		Name: "CroftSecretCopierDown",
		Expr: `count(present_over_time(croft_secret_copies_failed[1d])) unless count(croft_secret_copies_failed)`,
		For:  10 * time.Minute, Severity: Warning,
		Summary: "croft copy-secrets does not run",
		Meaning: "existing copies of Secrets stay, but changed Secrets are not copied, and new namespaces get no copies. No wall " +
			"depends on it",
		Fix: "read in its log, and in its pod's events, why it stops; if it runs, check that Prometheus scrapes it. A day after it was " +
			"removed, the alert ends",
		Run: "croft doctor; kubectl -n croft-system get deployments,pods; kubectl -n croft-system logs deployment/croft-secrets",
	},
}
