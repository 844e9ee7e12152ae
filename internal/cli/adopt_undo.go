package cli

import (
	"context"
	"fmt"
	"strings"

	"croft.dev/croft/internal/adoption/adopt"
	"croft.dev/croft/internal/operate/apply"
)

// undoAdoption returns a tenant's namespaces to their state before the adoption. Deleted
// objects are restored first, while croft still places the pods, so that pods are placed at
// all times.
func (a *app) undoAdoption(ctx context.Context, tenant string, o *adoptOptions) error {
	c, err := a.newClient()
	if err != nil {
		return toFailure(err)
	}
	u, err := adopt.NewUndoing(ctx, c, tenant)
	if err != nil {
		return toFailure(explainUnreachable(err))
	}
	if u.Record == nil && u.Tenant != nil {
		return fmt.Errorf("tenant %s was not adopted by `croft adopt`, so there is no record of an earlier state: `croft delete tenant %s` deletes the tenant", tenant, tenant)
	}
	if u.Record == nil && len(u.Namespaces) == 0 {
		printSafely(a.err, "tenant %s has no adoption to undo\n", tenant)
		return nil
	}
	printSafely(a.err, "Undoing the adoption of tenant %s:\n%s", tenant, describeUndo(u))
	if !o.yes && !a.confirmTenant(tenant) {
		return failuref("nothing was changed")
	}
	resume := func(err error) error {
		return failuref("%w\nrun the same command again to continue", explainUnreachable(err))
	}
	if err := u.Restore(ctx); err != nil {
		return resume(err)
	}
	printSafely(a.err, "1/3 the deleted objects are restored\n")
	if err := u.ReleaseTenant(ctx); err != nil {
		return resume(err)
	}
	if u.Tenant != nil {
		if err := a.awaitTenantDeleted(ctx, c, u.Tenant, o.timeout); err != nil {
			return err
		}
	}
	printSafely(a.err, "2/3 the tenant and its walls are deleted\n")
	if err := u.Finish(ctx); err != nil {
		return resume(err)
	}
	printSafely(a.err, "3/3 the namespaces are restored; the Platform and the pools stay\n")
	return nil
}

// describeUndo describes the consequences of undoing an adoption.
func describeUndo(u *adopt.Undoing) string {
	var b strings.Builder
	for _, n := range u.Namespaces {
		fmt.Fprintf(&b, "  - namespace %s stays with its pods, and loses its walls\n", n.Name)
	}
	if u.Record != nil {
		for _, o := range u.Record.Objects {
			fmt.Fprintf(&b, "  - %s is restored\n", apply.RefOf(o))
		}
	}
	b.WriteString("  - pools stay under croft's control, since their nodes would be deleted with them\n")
	return b.String()
}
