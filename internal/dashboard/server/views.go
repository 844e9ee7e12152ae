package server

import (
	"context"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/dashboard/cluster"
	"croft.dev/croft/internal/dashboard/page"
	"croft.dev/croft/internal/dashboard/workloads"
	"croft.dev/croft/internal/diagnose/me"
	"croft.dev/croft/internal/operate/heartbeat"
)

func showStart(ctx context.Context, c *cluster.Client, _ *http.Request) (page.Page, error) {
	var tenants v1alpha1.TenantList
	err := c.List(ctx, &tenants)
	hidden := apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
	if err != nil && !hidden {
		return page.Page{}, err
	}
	return page.NewStart(tenants.Items, hidden, time.Now()), nil
}

func showTenants(ctx context.Context, c *cluster.Client, r *http.Request) (page.Page, error) {
	var tenants v1alpha1.TenantList
	if err := c.List(ctx, &tenants); err != nil {
		return page.Page{}, err
	}
	// The operator renews its Lease every ten seconds, which is no reason to list all tenants again.
	beat, err := heartbeat.Read(ctx, c.Unwatched())
	if err != nil {
		return page.Page{}, err
	}
	query, now := r.URL.Query(), time.Now()
	filter := page.Filter{Query: query.Get("q"), NotReady: query.Get("not-ready") != "", WithoutOperator: !beat.IsBelievable(now)}
	return page.AddOperator(page.NewTenants(tenants.Items, filter, now), beat, now), nil
}

// openNamespace opens the page of the namespace that the user has typed.
func (d *dashboard) openNamespace(w http.ResponseWriter, r *http.Request) {
	namespace := strings.TrimSpace(r.URL.Query().Get("namespace"))
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		s, _ := d.Keys.Open(r.Cookies(), time.Now())
		d.respondMissing(w, r, s)
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

func showOverview(ctx context.Context, c *cluster.Client, r *http.Request) (page.Page, error) {
	namespace, m, err := readRules(ctx, c, r)
	if err != nil {
		return page.Page{}, err
	}
	if m.Refused, err = me.ReadRefused(ctx, c, namespace); err != nil {
		return page.Page{}, err
	}
	pods, err := workloads.Gather(ctx, c, namespace, workloads.Pods)
	if apierrors.IsForbidden(err) {
		pods, err = &workloads.List{}, nil
	}
	if err != nil {
		return page.Page{}, err
	}
	return page.NewOverview(namespace, m, pods.Workloads), nil
}

// readRules reads the rules of the tenant of the namespace in the path.
func readRules(ctx context.Context, c client.Reader, r *http.Request) (string, *me.Me, error) {
	namespace, err := readNamespace(r)
	if err != nil {
		return "", nil, err
	}
	m, err := me.ReadRules(ctx, c, namespace)
	return namespace, m, err
}

func showWorkloads(ctx context.Context, c *cluster.Client, r *http.Request) (page.Page, error) {
	return gatherWorkloads(ctx, c, r, workloads.Services, page.NewWorkloads)
}

func showJobs(ctx context.Context, c *cluster.Client, r *http.Request) (page.Page, error) {
	return gatherWorkloads(ctx, c, r, workloads.Batch, page.NewJobs)
}

func gatherWorkloads(
	ctx context.Context, c client.Reader, r *http.Request, kinds workloads.Group, newPage func(string, *workloads.List, time.Time) page.Page,
) (page.Page, error) {
	namespace, err := readNamespace(r)
	if err != nil {
		return page.Page{}, err
	}
	l, err := workloads.Gather(ctx, c, namespace, kinds)
	if err != nil {
		return page.Page{}, err
	}
	return newPage(namespace, l, time.Now()), nil
}

func showQuota(ctx context.Context, c *cluster.Client, r *http.Request) (page.Page, error) {
	namespace, m, err := readRules(ctx, c, r)
	if err != nil {
		return page.Page{}, err
	}
	if err := m.ReadQuota(ctx, c, namespace); err != nil {
		return page.Page{}, err
	}
	return page.NewQuota(namespace, m), nil
}

func showAccess(ctx context.Context, c *cluster.Client, r *http.Request) (page.Page, error) {
	namespace, err := readNamespace(r)
	if err != nil {
		return page.Page{}, err
	}
	m, bindings, err := me.ReadAccess(ctx, c, namespace)
	if err != nil {
		return page.Page{}, err
	}
	return page.NewAccess(namespace, m, bindings), nil
}
