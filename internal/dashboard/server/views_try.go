package server

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"

	"croft.dev/croft/internal/dashboard/cluster"
	"croft.dev/croft/internal/dashboard/page"
	"croft.dev/croft/internal/prove/trial"
)

// manifestsName is the name of the form's text in messages.
const manifestsName = "manifests"

func showTry(ctx context.Context, c *cluster.Client, r *http.Request) (page.Page, error) {
	namespace, _, err := readRules(ctx, c, r)
	if err != nil {
		return page.Page{}, err
	}
	return page.NewTry(namespace, "", nil, nil), nil
}

// tryManifests sends the manifests of the form as dry runs, with the user's token.
func tryManifests(ctx context.Context, c *cluster.Client, r *http.Request) (page.Page, string, error) {
	namespace, _, err := readRules(ctx, c, r)
	if err != nil {
		return page.Page{}, "", err
	}
	text := r.PostForm.Get("manifests")
	manifests, problem := parseManifests(c.RESTMapper(), text)
	if problem != nil {
		return page.NewTry(namespace, text, problem, nil), "", nil
	}
	report, err := trial.NewWithClient(c, namespace).Try(ctx, manifests)
	if err != nil {
		return page.Page{}, "", err
	}
	return page.NewTry(namespace, text, nil, report), "", nil
}

// parseManifests returns the manifests, or a problem.
func parseManifests(mapper meta.RESTMapper, text string) (all []trial.Manifest, problem page.Text) {
	if len(text) > page.LongestTrial {
		return nil, page.T("the manifests have more than %d KiB: use the command below", page.LongestTrial>>10)
	}
	all, err := trial.ReadManifests(manifestsName, []byte(text))
	switch {
	case err != nil:
		return nil, page.Raw(err.Error())
	case len(all) == 0:
		return nil, page.T("there is no object: paste at least one manifest")
	case len(all) > page.MostTried:
		return nil, page.T("there are %d objects, and the dashboard tries at most %d: use the command below", len(all), page.MostTried)
	}
	for _, m := range all {
		kind := m.Object.GroupVersionKind()
		if _, err := mapper.RESTMapping(kind.GroupKind(), kind.Version); err != nil {
			return nil, page.T("%s:%d: the dashboard does not know the kind %s of %s: use the command below", m.File, m.Line, kind.Kind, kind.GroupVersion())
		}
	}
	return all, nil
}
