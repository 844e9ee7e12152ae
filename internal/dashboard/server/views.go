package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/dashboard/page"
	"croft.dev/croft/internal/dashboard/workloads"
	"croft.dev/croft/internal/diagnose/me"
	"croft.dev/croft/internal/diagnose/why"
)

func showStart(ctx context.Context, c client.Client, _ *http.Request) (page.Page, error) {
	var tenants v1alpha1.TenantList
	err := c.List(ctx, &tenants)
	hidden := apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
	if err != nil && !hidden {
		return page.Page{}, err
	}
	return page.NewStart(tenants.Items, hidden, time.Now()), nil
}

func showTenants(ctx context.Context, c client.Client, r *http.Request) (page.Page, error) {
	var tenants v1alpha1.TenantList
	if err := c.List(ctx, &tenants); err != nil {
		return page.Page{}, err
	}
	query := r.URL.Query()
	return page.NewTenants(tenants.Items, page.Filter{Query: query.Get("q"), NotReady: query.Get("not-ready") != ""}, time.Now()), nil
}

// openNamespace opens the page of the namespace that the user has typed.
func (d *dashboard) openNamespace(w http.ResponseWriter, r *http.Request) {
	namespace := strings.TrimSpace(r.URL.Query().Get("namespace"))
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		s, _ := d.Keys.Open(r.Cookies(), time.Now())
		d.respondMissing(w, s)
		return
	}
	http.Redirect(w, r, page.Link("namespaces", namespace), http.StatusSeeOther)
}

// readNamespace returns the namespace in the path. Other names than Kubernetes allows are
// missing: pages repeat names in commands, which people copy into a shell.
func readNamespace(r *http.Request) (string, error) {
	namespace := r.PathValue("namespace")
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		return "", errMissing
	}
	return namespace, nil
}

func showOverview(ctx context.Context, c client.Client, r *http.Request) (page.Page, error) {
	namespace, m, err := gatherMe(ctx, c, r)
	if err != nil {
		return page.Page{}, err
	}
	pods, err := gatherPods(ctx, c, m)
	if err != nil {
		return page.Page{}, err
	}
	return page.NewOverview(namespace, m, pods), nil
}

// gatherMe reads the user's state in the tenant of the namespace in the path.
func gatherMe(ctx context.Context, c client.Client, r *http.Request) (string, *me.Me, error) {
	namespace, err := readNamespace(r)
	if err != nil {
		return "", nil, err
	}
	m, err := me.Gather(ctx, c, namespace)
	return namespace, m, err
}

// gatherPods lists the pods in the tenant's namespaces that the user may list.
func gatherPods(ctx context.Context, c client.Reader, m *me.Me) ([]workloads.Workload, error) {
	lists := make([]*workloads.List, len(m.Namespaces))
	group, ctx := errgroup.WithContext(ctx)
	for i, n := range m.Namespaces {
		group.Go(func() error {
			var err error
			lists[i], err = workloads.GatherPods(ctx, c, n.Name)
			if apierrors.IsForbidden(err) {
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var all []workloads.Workload
	for _, l := range lists {
		if l != nil {
			all = append(all, l.Workloads...)
		}
	}
	slices.SortStableFunc(all, workloads.CompareUrgency)
	return all, nil
}

func showWorkloads(ctx context.Context, c client.Client, r *http.Request) (page.Page, error) {
	namespace, err := readNamespace(r)
	if err != nil {
		return page.Page{}, err
	}
	l, err := workloads.Gather(ctx, c, namespace)
	if err != nil {
		return page.Page{}, err
	}
	return page.NewWorkloads(namespace, l, time.Now()), nil
}

// showWorkload does not decode messages of AWS: that would need credentials of the dashboard.
func showWorkload(ctx context.Context, c client.Client, r *http.Request) (page.Page, error) {
	namespace, err := readNamespace(r)
	if err != nil {
		return page.Page{}, err
	}
	name := r.PathValue("name")
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return page.Page{}, errMissing
	}
	target, err := why.ParseTarget([]string{r.PathValue("kind"), name}, namespace)
	if err != nil || target.Namespace == "" {
		return page.Page{}, errMissing
	}
	snapshot, err := why.Gather(ctx, c, target)
	if err != nil {
		return page.Page{}, err
	}
	story := why.ExplainSnapshot(snapshot)
	return page.NewStory(&story), nil
}

func showQuota(ctx context.Context, c client.Client, r *http.Request) (page.Page, error) {
	namespace, m, err := gatherMe(ctx, c, r)
	if err != nil {
		return page.Page{}, err
	}
	return page.NewQuota(namespace, m), nil
}

func showAccess(ctx context.Context, c client.Client, r *http.Request) (page.Page, error) {
	namespace, m, err := gatherMe(ctx, c, r)
	if err != nil {
		return page.Page{}, err
	}
	var bindings rbacv1.RoleBindingList
	err = c.List(ctx, &bindings, client.InNamespace(namespace))
	hidden := apierrors.IsForbidden(err)
	if err != nil && !hidden {
		return page.Page{}, err
	}
	return page.NewAccess(namespace, m, bindings.Items, hidden), nil
}
