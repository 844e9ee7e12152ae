package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	goruntime "runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	yamlv2 "go.yaml.in/yaml/v2"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// format is the value of the flag -o.
type format string

const (
	formatTable format = "table"
	// formatText is the output for people of commands that print no table.
	formatText format = "text"
	formatJSON format = "json"
	formatYAML format = "yaml"
)

func (f *format) addFlags(c *cobra.Command, allowed ...format) {
	*f = allowed[0]
	names := make([]string, len(allowed))
	for i, a := range allowed {
		names[i] = string(a)
	}
	list := strings.Join(names, "|")
	c.Flags().StringVarP((*string)(f), "output", "o", string(*f), "output format: "+list)
	registerCompletion(c, "output", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	run := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if !slices.Contains(allowed, *f) {
			return fmt.Errorf("-o %s: unknown output format: write one of %s", *f, list)
		}
		return run(cmd, args)
	}
}

// print writes a value as JSON or YAML.
func (f format) print(w io.Writer, value any) error {
	var document bytes.Buffer
	encoder := json.NewEncoder(&document)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return toFailure(err)
	}
	text := escapeJSON(document.Bytes())
	// A YAML printer may write escaped characters raw, which YAML does not allow. Such
	// output stays JSON, which is also valid YAML.
	if f == formatYAML && bytes.Equal(text, document.Bytes()) {
		var err error
		if text, err = yaml.JSONToYAML(text); err != nil {
			return toFailure(err)
		}
	}
	_, err := w.Write(text)
	return toFailure(err)
}

// printTable aligns rows below a header, as kubectl does.
func printTable(w io.Writer, header []string, rows [][]string) {
	tw := tabwriter.NewWriter(w, 6, 4, 3, ' ', 0)
	for _, row := range append([][]string{header}, rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = escapeLine(cell)
		}
		printSafely(tw, "%s\n", strings.Join(cells, "\t"))
	}
	_ = tw.Flush()
}

func formatAge(t time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(t))
}

// printObjects writes objects as a stream that kubectl accepts. It leaves out fields that
// only a server sets, and its output is deterministic.
func printObjects(w io.Writer, objects []client.Object, f format) error {
	if f == formatJSON {
		list := make([]any, len(objects))
		for i, o := range objects {
			content, err := convertForPrinting(o)
			if err != nil {
				return toFailure(err)
			}
			list[i] = content
		}
		return f.print(w, map[string]any{"apiVersion": "v1", "kind": "List", "items": list})
	}
	buffered := bufio.NewWriter(w)
	for some := range slices.Chunk(objects, printedAtOnce) {
		documents, err := marshalObjects(some)
		if err != nil {
			return toFailure(err)
		}
		for _, document := range documents {
			printSafely(buffered, "---\n%s", document)
		}
	}
	return toFailure(buffered.Flush())
}

// printedAtOnce limits the objects that are in memory as text: thousands of tenants have gigabytes of it.
const printedAtOnce = 512

// marshalObjects returns the YAML of objects, with all processors.
func marshalObjects(objects []client.Object) ([][]byte, error) {
	documents := make([][]byte, len(objects))
	var group errgroup.Group
	group.SetLimit(goruntime.GOMAXPROCS(0))
	for i, o := range objects {
		group.Go(func() error {
			content, err := convertForPrinting(o)
			if err == nil {
				// The result of sigs.k8s.io/yaml, without its detour by JSON, which takes half of the time.
				documents[i], err = yamlv2.Marshal(content)
			}
			return err
		})
	}
	return documents, group.Wait()
}

// convertForPrinting returns an object without the fields that only a server sets.
func convertForPrinting(o client.Object) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	return content, nil
}
