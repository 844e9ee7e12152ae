package cli

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/login"
	"croft.dev/croft/internal/scheme"
	"croft.dev/croft/internal/verify"
	"croft.dev/croft/internal/wall"
	"croft.dev/croft/internal/why"
)

// completing is the time limit of a completion. A user does not wait longer for a
// suggestion.
const completing = 2 * time.Second

// complete registers a flag's values. It panics on an unknown flag, which is a bug in
// croft.
func complete(c *cobra.Command, flag string, with cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, with); err != nil {
		panic(err)
	}
}

// names returns suggestions. It is called only when they are needed.
type names func() []string

// one suggests values for a single word.
func one(of names) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return beginning(of(), "", typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFrom suggests values for a comma-separated list, without the values that it
// contains.
func completeFrom(of names) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		done := typed[:strings.LastIndexByte(typed, ',')+1]
		rest := slices.DeleteFunc(of(), func(n string) bool { return slices.Contains(strings.Split(done, ","), n) })
		return beginning(rest, done, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// first suggests values for the first argument only.
func first(of names) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return one(of)(c, args, typed)
	}
}

func beginning(of []string, before, typed string) []cobra.Completion {
	var all []cobra.Completion
	for _, name := range of {
		if name = before + name; strings.HasPrefix(name, typed) {
			all = append(all, name)
		}
	}
	return all
}

func fixed(values ...string) names { return func() []string { return slices.Clone(values) } }

// addCompletions adds completion to all commands.
func (a *app) addCompletions(root *cobra.Command) {
	tenants, pools, namespaces := a.namesOf("Tenant"), a.namesOf("Pool"), a.namesOf("Namespace")
	arguments := map[string]cobra.CompletionFunc{
		"croft adopt tenant": a.adoptable, "croft delete tenant": first(tenants), "croft delete pool": first(pools),
		"croft status": one(a.subjects), "croft why": a.targets,
	}
	flags := map[string]map[string]cobra.CompletionFunc{
		"croft status": {"tenant": completeFrom(tenants)},
		"croft verify": {"tenant": one(tenants), "attack": completeFrom(attackNames), "explain": one(attackNames), "wall": completeFrom(wallNames)},
		"croft reach":  {"from": one(namespaces), "to": one(namespaces), "protocol": one(fixed("TCP", "UDP", "SCTP"))},
		"croft why":    {"namespace": one(namespaces)}, "croft latency": {"pool": one(pools)},
		"croft login": {"token-storage": one(login.Storages)}, "croft login get-token": {"token-storage": one(login.Storages)}, "croft login forget": {"token-storage": one(login.Storages)},
		"croft kubeconfig": {
			"tenant": one(tenants), "namespace": one(namespaces), "token-storage": one(login.Storages),
		},
		"croft kubeconfig token": {"namespace": one(namespaces)},
		"croft iam":              {"identity": one(fixed("pod-identity", "irsa"))},
		"croft migrate": {
			"report": one(fixed("text", "markdown", "json")), "node-class": one(fixed("kwok")),
		},
	}
	complete(root, "context", one(a.contexts))
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for flag, with := range flags[c.CommandPath()] {
			complete(c, flag, with)
		}
		if c.ValidArgsFunction == nil {
			c.ValidArgsFunction = cobra.NoFileCompletions
			if with := arguments[c.CommandPath()]; with != nil {
				c.ValidArgsFunction = with
			}
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { completeFiles(c, f.Name) })
		for _, sub := range c.Commands() {
			if sub.Name() != "help" && sub.Name() != "completion" {
				walk(sub)
			}
		}
	}
	walk(root)
}

// completeFiles suggests files for flags that take a file. For other flags without a
// completion function it suggests nothing.
func completeFiles(c *cobra.Command, flag string) {
	with := cobra.NoFileCompletions
	switch flag {
	case "filename":
		if c.Name() == "why" {
			return // which may have any extension
		}
		with = cobra.FixedCompletions([]string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt)
	case "out":
		with = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	case "kubeconfig", "certificate-authority", "issuer-certificate-authority":
		return
	}
	if _, known := c.GetFlagCompletionFunc(flag); !known {
		complete(c, flag, with)
	}
}

// namesOf returns the names of objects in the cluster. It returns none if the cluster does
// not answer in time, or if there is no cluster: a shell cannot show an error.
func (a *app) namesOf(kind string) names {
	gvk := v1alpha1.GroupVersion.WithKind(kind)
	if kind == "Namespace" {
		gvk = corev1.SchemeGroupVersion.WithKind(kind)
	}
	return func() []string {
		answered := make(chan []string, 1)
		go func() {
			var list metav1.PartialObjectMetadataList
			list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
			answered <- a.listNames(&list)
		}()
		select {
		case found := <-answered:
			return found
		case <-time.After(completing):
			return nil
		}
	}
}

func (a *app) listNames(list *metav1.PartialObjectMetadataList) []string {
	config, err := a.config()
	if err != nil {
		return nil
	}
	config.Timeout = completing
	c, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), completing)
	defer cancel()
	if err := c.List(ctx, list); err != nil {
		return nil
	}
	all := make([]string, len(list.Items))
	for i := range list.Items {
		all[i] = list.Items[i].Name
	}
	slices.Sort(all)
	return all
}

// subjects returns the possible arguments of status.
func (a *app) subjects() []string {
	var all []string
	for _, kind := range []string{"Pool", "Tenant"} {
		for _, name := range a.namesOf(kind)() {
			all = append(all, strings.ToLower(kind)+"/"+name)
		}
	}
	return all
}

// targets suggests the kinds that why accepts. It does not suggest names, since there are
// too many pods.
func (a *app) targets(_ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	if len(args) > 0 || strings.Contains(typed, "/") {
		return nil, directive
	}
	kinds := why.Kinds()
	for i := range kinds {
		kinds[i] += "/"
	}
	return beginning(kinds, "", typed), directive
}

func wallNames() []string {
	var all []string
	for _, w := range wall.All() {
		all = append(all, w.Name())
	}
	return all
}

func attackNames() []string {
	scratch, err := verify.NewScratch(undeclared())
	if err != nil {
		return nil
	}
	var all []string
	for _, at := range scratch.Attacks() {
		all = append(all, at.Name)
	}
	slices.SortFunc(all, cmp.Compare)
	return slices.Compact(all)
}

// adoptable suggests the tenants of the file and of the cluster.
func (a *app) adoptable(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return first(func() []string {
		all := a.namesOf("Tenant")()
		files := fileFlags{}
		if names, err := c.Flags().GetStringSlice("filename"); err == nil && !slices.Contains(names, "-") {
			files.names = names
		}
		if d, err := files.parse(nil); err == nil {
			for _, t := range d.Tenants {
				all = append(all, t.Name)
			}
		}
		slices.Sort(all)
		return slices.Compact(all)
	})(c, args, typed)
}

// contexts returns the contexts of the kubeconfig.
func (a *app) contexts() []string {
	config, err := a.cluster.rules.Load()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(config.Contexts))
}
