package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	partOfLabel    = "app.kubernetes.io/part-of"
	componentLabel = "app.kubernetes.io/component"
)

// lock is a flag that restricts a controller of Flux to tenants' own rights.
type lock struct {
	flag     string
	severity Severity
	// consequence describes the effect of a missing flag.
	consequence string
}

var (
	noCrossNamespaceRefs = lock{"--no-cross-namespace-refs", Warning, "reads sources and Secrets of other namespaces for any tenant that names them; only croft's policies prevent that"}
	defaultAccount       = lock{"--default-service-account", Warning, "applies objects without a service account with its own rights; only croft's policies prevent that"}
	noRemoteBases        = lock{"--no-remote-bases", Problem, "fetches repositories that a tenant's kustomization.yaml names, from its own position in the network, which bypasses policy.sourceHosts"}
)

// locks are the flags that each of Flux's controllers needs in a multi-tenant cluster.
var locks = map[string][]lock{
	"kustomize-controller":        {noCrossNamespaceRefs, defaultAccount, noRemoteBases},
	"helm-controller":             {noCrossNamespaceRefs, defaultAccount},
	"notification-controller":     {noCrossNamespaceRefs},
	"image-reflector-controller":  {noCrossNamespaceRefs},
	"image-automation-controller": {noCrossNamespaceRefs},
}

// keys are flags that give kustomize-controller a key of the platform. It uses the key to
// decrypt for every tenant whose Kustomization names no Secret of its own.
var keys = map[string][]lock{
	"kustomize-controller": {{"--sops-age-secret", Problem, "decrypts with the platform's age key for every Kustomization with a decryption.serviceAccountName and no secretRef: tenants can read files that are encrypted for that key"}},
}

// gatherFlux reads the Deployments of Flux.
func (g *gatherer) gatherFlux(ctx context.Context) {
	var list appsv1.DeploymentList
	g.ReadList(ctx, readFlux, &list, client.MatchingLabels{partOfLabel: "flux"})
	tenants := map[string]bool{}
	for i := range g.Namespaces {
		tenants[g.Namespaces[i].Name] = true
	}
	for _, d := range dropDeleted(list.Items) {
		if !tenants[d.Namespace] { // a tenant's own Flux is not checked
			g.Flux = append(g.Flux, d)
		}
	}
}

// checkFlux reports controllers that are not locked down for several tenants.
func checkFlux(s *Snapshot) []Finding {
	var all []Finding
	for i := range s.Flux {
		d := &s.Flux[i]
		name := d.Labels[componentLabel]
		if _, ok := locks[name]; !ok {
			name = d.Name
		}
		args := listArguments(d)
		object := "Deployment/" + d.Namespace + "/" + d.Name
		for _, l := range locks[name] {
			if !isSet(args, l.flag) {
				all = append(all, newFinding("flux-unlocked", l.severity, object, fmt.Sprintf("runs without %s: it %s", l.flag, l.consequence)))
			}
		}
		for _, l := range keys[name] {
			if isSet(args, l.flag) {
				all = append(all, newFinding("flux-shared-key", l.severity, object, fmt.Sprintf("runs with %s: it %s", l.flag, l.consequence)))
			}
		}
	}
	return all
}

func listArguments(d *appsv1.Deployment) []string {
	var all []string
	for _, c := range d.Spec.Template.Spec.Containers {
		all = append(all, c.Command...)
		all = append(all, c.Args...)
	}
	return all
}

// isSet reports whether a flag is given with a value other than the empty one and false.
// The last occurrence counts.
func isSet(args []string, flag string) bool {
	set := false
	for _, arg := range args {
		name, value, given := strings.Cut(arg, "=")
		if "--"+strings.TrimLeft(name, "-") != flag {
			continue
		}
		set = true
		if given {
			on, err := strconv.ParseBool(value)
			set = value != "" && (on || err != nil)
		}
	}
	return set
}
