package cli

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/adoption/migrate"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/declare/wording"
)

type migrateOptions struct {
	names     []string
	live      bool
	out       string
	report    string
	nodeClass string
	replace   bool
	force     bool
	options   draft.Options
}

func newMigrate(a *app) *cobra.Command {
	var o migrateOptions
	c := &cobra.Command{
		Use:   "migrate (-f FILE | --live)",
		Short: "Convert your present setup into croft.yaml",
		Long: `Read the objects that isolate teams today (Karpenter's Provisioners and NodePools,
Gatekeeper's mutators and constraints, the values file of a chart of tenants,
Capsule's Tenants, HNC's trees, and the policies, bindings and quotas around them),
and write croft.yaml and a report on every field: kept, changed, not kept, or out of
croft's scope.

croft.yaml goes to standard output and the report to standard error; with --out,
both go to files in a directory, with the node classes that croft.yaml refers to.
Only --force overwrites an existing file with other content, such as one that you
have edited. The command never writes to a cluster.

The exit status is 0 if croft.yaml can be applied after you have read the report, and 2
if problems must be fixed first: each is a line on standard error, and the readable
input is converted nevertheless. It is 1 if a cluster or a file could not be reached.`,
		Example: `  croft migrate -f manifests/ > croft.yaml
  croft migrate -f values.yaml -f karpenter.yaml --cluster-name demo --out migrated
  croft migrate --live --out migrated`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runMigrate(cmd.Context(), o) },
	}
	flags := c.Flags()
	flags.StringSliceVarP(&o.names, "filename", "f", nil, "file of objects or values, a directory with its subdirectories, or - for standard input")
	flags.BoolVar(&o.live, "live", false, "read the cluster of --kubeconfig and --context; nothing is written to it")
	flags.StringVarP(&o.out, "out", "o", "", "directory to write croft.yaml, report.md and node classes to")
	flags.StringVar(&o.report, "report", "text", "format of the report: text|markdown|json")
	flags.StringVar(&o.nodeClass, "node-class", "", "kwok gives every pool simulated nodes, to try the result in a sandbox")
	flags.StringVar(&o.options.ClusterName, "cluster-name", "", "name of the cluster, if the input does not have it or uses a shell variable for it")
	flags.StringVar(&o.options.GroupPrefix, "group-prefix", "", "the API server's prefix of groups, such as oidc:; detected by default")
	flags.BoolVar(&o.replace, "replace-nodes", false, "with --live: let Karpenter replace the running nodes, one by one, when croft adopts their pool")
	flags.BoolVar(&o.force, "force", false, "with --out: overwrite existing files with other content")
	c.MarkFlagsOneRequired("filename", "live")
	refusePointlessFlags(c, "it is for --live: files have no nodes", func() bool { return !o.live }, "replace-nodes")
	refusePointlessFlags(c, "it is for --out", func() bool { return o.out == "" }, "force")
	return c
}

func (o *migrateOptions) validate() error {
	if !slices.Contains([]string{"text", "markdown", "json"}, o.report) {
		return fmt.Errorf("--report %s: no such format: write one of text|markdown|json", o.report)
	}
	if o.nodeClass != "" && o.nodeClass != "kwok" {
		return fmt.Errorf("--node-class %s: only kwok can replace the node classes of the input", o.nodeClass)
	}
	o.options.Kwok = o.nodeClass == "kwok"
	o.options.HoldNodes = o.live && !o.replace
	return nil
}

func (a *app) runMigrate(ctx context.Context, o migrateOptions) error {
	if err := o.validate(); err != nil {
		return err
	}
	objects, problems, err := a.readSources(ctx, o)
	if err != nil {
		return err
	}
	result := migrate.Migrate(objects, problems, o.options)
	if err := a.writeMigrated(result, o); err != nil {
		return err
	}
	if err := result.Problems.Err(); err != nil && o.report == "json" && o.out == "" {
		return &reportedBadInput{err} // the report contains the problems; more lines would make its JSON invalid
	}
	return result.Problems.Err()
}

// readSources reads the files, the cluster, or both.
func (a *app) readSources(ctx context.Context, o migrateOptions) ([]*source.Object, document.Problems, error) {
	var (
		all      []*source.Object
		problems document.Problems
	)
	for _, name := range o.names {
		files, err := listFilesBelow(name)
		if err != nil {
			return nil, nil, err
		}
		for _, file := range files {
			data, err := readFile(file, a.in)
			if err != nil {
				return nil, nil, err
			}
			if file == "-" {
				file = "standard input"
			}
			objects, wrong := source.Parse(file, data)
			all = append(all, objects...)
			problems = append(problems, wrong...)
		}
	}
	if o.live {
		c, err := a.newClient()
		if err != nil {
			return nil, nil, toFailure(err)
		}
		// A migration only reads.
		objects, wrong, err := migrate.ReadCluster(ctx, client.Reader(c))
		if err != nil {
			return nil, nil, toFailure(explainUnreachable(err))
		}
		all = append(all, objects...)
		problems = append(problems, wrong...)
	}
	return all, problems, nil
}

// listFilesBelow lists the files of a directory and its subdirectories.
func listFilesBelow(name string) ([]string, error) {
	info, err := os.Stat(name)
	if name == "-" || err != nil || !info.IsDir() {
		return listFiles(name)
	}
	var files []string
	err = filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return nil, explainFileError(name, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no .yaml, .yml or .json file in this directory or below it", name)
	}
	return files, nil
}

// writeMigrated writes to standard output and standard error, or to files.
func (a *app) writeMigrated(r *migrate.Result, o migrateOptions) error {
	file, err := r.File.YAML()
	if err != nil {
		return toFailure(err)
	}
	if o.out == "" {
		if _, err := a.out.Write(file); err != nil {
			return toFailure(err)
		}
		// Standard output contains croft.yaml, which must not contain other objects.
		if len(r.Manifests) > 0 {
			printSafely(a.err, "croft.yaml refers to %s that --out DIR writes to nodeclasses.yaml\n", wording.FormatCount(len(r.Manifests), "node class"))
		}
		return a.printMigration(a.err, r, o.report)
	}
	files := map[string]func(io.Writer) error{
		"croft.yaml": func(w io.Writer) error { _, err := w.Write(file); return toFailure(err) },
		"report.md":  func(w io.Writer) error { return a.printMigration(w, r, "markdown") },
	}
	if o.report == "json" {
		files["report.json"] = func(w io.Writer) error { return a.printMigration(w, r, "json") }
	}
	if len(r.Manifests) > 0 {
		files["nodeclasses.yaml"] = func(w io.Writer) error {
			objects := make([]client.Object, len(r.Manifests))
			for i, m := range r.Manifests {
				objects[i] = m
			}
			return printObjects(w, objects, formatYAML)
		}
	}
	if err := writeFiles(o.out, files, o.force); err != nil {
		return err
	}
	printSafely(a.err, "%s: wrote croft.yaml and the report, report.md\n%s\n", o.out, r.Summary())
	return nil
}

func (a *app) printMigration(w io.Writer, r *migrate.Result, form string) error {
	switch form {
	case "json":
		return formatJSON.print(w, r.Report())
	case "markdown":
		printSafely(w, "%s", r.Markdown())
	default:
		printSafely(w, "%s", r.Text())
	}
	return nil
}
