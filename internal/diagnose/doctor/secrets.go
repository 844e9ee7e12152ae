package doctor

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/operate/heartbeat"
	"croft.dev/croft/internal/operate/secretcopy"
)

const (
	copier    = "Deployment/" + secretcopy.LeaseName
	copierFix = "`croft install --image IMAGE --copy-secrets`, or copySecrets.enabled in the chart's values, deploys it; if it is deployed, " +
		"`kubectl -n " + v1alpha1.SystemNamespace + " describe pods` shows why it does not run"
	copyFix = "create or correct the Secret in " + v1alpha1.SecretsNamespace + ", or the declaration; `kubectl -n " + v1alpha1.SystemNamespace +
		" logs deployment/" + secretcopy.LeaseName + "` names every copy"
)

// gatherCopier reads the Lease of `croft copy-secrets`, which has its heartbeat and its problems. doctor itself
// reads no Secrets.
func (g *gatherer) gatherCopier(ctx context.Context) {
	lease := &coordinationv1.Lease{}
	if g.ReadObject(ctx, readCopier, client.ObjectKey{Namespace: v1alpha1.SystemNamespace, Name: secretcopy.LeaseName}, lease) {
		g.Copier = lease
	}
}

// checkCopies reports copies of Secrets that are missing or old.
func checkCopies(s *Snapshot) []Finding {
	tenants := s.listCopyingTenants()
	if s.Unreadable[readCopier] != "" {
		return nil
	}
	isAlive := s.Copier != nil && heartbeat.ParseLease(s.Copier).IsAlive(s.Now)
	if len(tenants) == 0 && !isAlive {
		return nil
	}
	if s.Copier == nil {
		return []Finding{{
			Severity: Problem, Object: copier, Fix: copierFix,
			Message: fmt.Sprintf("croft copy-secrets has not run yet, and copies of Secrets are declared for %s", wording.FormatFirst(tenants, 5)),
		}}
	}
	if !isAlive {
		return []Finding{{
			Severity: Problem, Object: copier, Fix: copierFix,
			Message: fmt.Sprintf("croft copy-secrets has not run for %s: existing copies stay, but changed Secrets and new namespaces get no copies",
				duration.HumanDuration(s.Now.Sub(heartbeat.ParseLease(s.Copier).At))),
		}}
	}
	problems, err := secretcopy.ReadProblems(s.Copier)
	if err != nil {
		return []Finding{{Severity: Warning, Object: copier, Message: err.Error(), Fix: "use the same version of croft as croft copy-secrets"}}
	}
	var all []Finding
	for _, p := range problems {
		all = append(all, Finding{
			Severity: Problem, Object: "Secret/" + p.Source, Fix: copyFix,
			Message: fmt.Sprintf("not copied into %s, such as %s: %s", wording.FormatCount(p.Copies, "namespace"), p.Example, p.Reason),
		})
	}
	return all
}

// listCopyingTenants returns the names of the tenants with copies of Secrets.
func (s *Snapshot) listCopyingTenants() []string {
	var names []string
	for _, t := range s.listTenants() {
		if len(t.Secrets) > 0 {
			names = append(names, t.Name)
		}
	}
	return names
}
