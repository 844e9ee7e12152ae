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
	"croft.dev/croft/internal/access/login"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/diagnose/why"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/walls/wall"
)

// completing is the time limit of a completion. A user does not wait longer for a
// suggestion.
const completing = 2 * time.Second

// registerCompletion registers a flag's values. It panics on an unknown flag, which is a bug in
// croft.
func registerCompletion(c *cobra.Command, flag string, with cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, with); err != nil {
		panic(err)
	}
}

// nameLister returns suggestions. It is called only when they are needed.
type nameLister func() []string

// completeWord suggests values for a single word.
func completeWord(of nameLister) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return filterByPrefix(of(), "", typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeList suggests values for a comma-separated list, without the values that it
// contains.
func completeList(of nameLister) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		done := typed[:strings.LastIndexByte(typed, ',')+1]
		rest := slices.DeleteFunc(of(), func(n string) bool { return slices.Contains(strings.Split(done, ","), n) })
		return filterByPrefix(rest, done, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFirst suggests values for the first argument only.
func completeFirst(of nameLister) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completeWord(of)(c, args, typed)
	}
}

func filterByPrefix(of []string, before, typed string) []cobra.Completion {
	var all []cobra.Completion
	for _, name := range of {
		if name = before + name; strings.HasPrefix(name, typed) {
			all = append(all, name)
		}
	}
	return all
}

func newFixedNames(values ...string) nameLister {
	return func() []string { return slices.Clone(values) }
}

// addCompletions adds completion to all commands.
func (a *app) addCompletions(root *cobra.Command) {
	tenants, pools, namespaces := a.newNameLister("Tenant"), a.newNameLister("Pool"), a.newNameLister("Namespace")
	arguments := map[string]cobra.CompletionFunc{
		"croft adopt tenant": a.completeAdoptable, "croft delete tenant": completeFirst(tenants), "croft delete pool": completeFirst(pools),
		"croft doctor": completeWord(listCheckNames), "croft status": completeWord(a.listSubjects), "croft why": a.completeTarget,
	}
	flags := map[string]map[string]cobra.CompletionFunc{
		"croft status": {"tenant": completeList(tenants)},
		"croft verify": {"tenant": completeWord(tenants), "attack": completeList(listAttackNames), "explain": completeWord(listAttackNames), "wall": completeList(listWallNames)},
		"croft reach":  {"from": completeWord(namespaces), "to": completeWord(namespaces), "protocol": completeWord(newFixedNames("TCP", "UDP", "SCTP"))},
		"croft why":    {"namespace": completeWord(namespaces)}, "croft latency": {"pool": completeWord(pools)},
		"croft login": {"token-storage": completeWord(login.Storages)}, "croft login get-token": {"token-storage": completeWord(login.Storages)}, "croft login forget": {"token-storage": completeWord(login.Storages)},
		"croft kubeconfig": {
			"tenant": completeWord(tenants), "namespace": completeWord(namespaces), "token-storage": completeWord(login.Storages),
		},
		"croft kubeconfig token": {"namespace": completeWord(namespaces)},
		"croft iam":              {"identity": completeWord(newFixedNames("pod-identity", "irsa"))},
		"croft migrate": {
			"report": completeWord(newFixedNames("text", "markdown", "json")), "node-class": completeWord(newFixedNames("kwok")),
		},
	}
	for _, process := range []string{"operator", "proxy", "dashboard", "agent"} {
		flags["croft "+process] = map[string]cobra.CompletionFunc{
			"log-level": completeList(newFixedNames("debug", "info", "warn", "error")), "log-format": completeWord(newFixedNames("json", "text")),
		}
	}
	registerCompletion(root, "context", completeWord(a.listContexts))
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for flag, with := range flags[c.CommandPath()] {
			registerCompletion(c, flag, with)
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
		registerCompletion(c, flag, with)
	}
}

// newNameLister returns the names of objects in the cluster. It returns none if the cluster does
// not answer in time, or if there is no cluster: a shell cannot show an error.
func (a *app) newNameLister(kind string) nameLister {
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
	config, err := a.loadConfig()
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

// listSubjects returns the possible arguments of status.
func (a *app) listSubjects() []string {
	var all []string
	for _, kind := range []string{"Pool", "Tenant"} {
		for _, name := range a.newNameLister(kind)() {
			all = append(all, strings.ToLower(kind)+"/"+name)
		}
	}
	return all
}

// completeTarget suggests the kinds that why accepts. It does not suggest names, since there are
// too many pods.
func (a *app) completeTarget(_ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	if len(args) > 0 || strings.Contains(typed, "/") {
		return nil, directive
	}
	kinds := why.Kinds()
	for i := range kinds {
		kinds[i] += "/"
	}
	return filterByPrefix(kinds, "", typed), directive
}

func listWallNames() []string {
	var all []string
	for _, w := range wall.All() {
		all = append(all, w.Name())
	}
	return all
}

func listAttackNames() []string {
	scratch, err := verify.NewScratch(newDefaultPlatform())
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

// completeAdoptable suggests the tenants of the file and of the cluster.
func (a *app) completeAdoptable(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return completeFirst(func() []string {
		all := a.newNameLister("Tenant")()
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

// listContexts returns the contexts of the kubeconfig.
func (a *app) listContexts() []string {
	config, err := a.cluster.rules.Load()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(config.Contexts))
}
