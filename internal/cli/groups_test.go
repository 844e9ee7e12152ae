package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestBadSubcommands runs all commands: an unknown subcommand, and a group
// without a subcommand, are bad input with one line of output. The help is printed only on
// request.
func TestBadSubcommands(t *testing.T) {
	t.Setenv("KUBECONFIG", t.TempDir()+"/none") // croft login would read its provider from it
	isRefused := func(args ...string) {
		t.Helper()
		var out, errOut bytes.Buffer
		status := Main(args, strings.NewReader(""), &out, &errOut)
		if status != exitBadInput || strings.Count(errOut.String(), "\n") != 1 || out.Len() > 0 {
			t.Errorf("croft %s: exit status %d, %d lines on standard output, and: %s", strings.Join(args, " "), status, strings.Count(out.String(), "\n"), errOut.String())
		}
	}
	isHelped := func(args ...string) {
		t.Helper()
		var out, errOut bytes.Buffer
		if status := Main(args, strings.NewReader(""), &out, &errOut); status != exitGood || !strings.Contains(out.String(), "Usage:") {
			t.Errorf("croft %s: exit status %d: %s%s", strings.Join(args, " "), status, out.String(), errOut.String())
		}
	}
	walked := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		walked++
		path := strings.Fields(c.CommandPath())[1:]
		if c.HasSubCommands() {
			if c.HasParent() {
				isRefused(path...)
			}
			isRefused(append(path, "frobnicate")...)
			isRefused(append(path, "frobnicate", "name")...)
		} else if c.Args != nil && c.Args(c, []string{"frobnicate"}) != nil {
			isRefused(append(path, "frobnicate")...)
		}
		isHelped(append(path, "--help")...)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(&app{out: &bytes.Buffer{}, err: &bytes.Buffer{}, in: strings.NewReader(""), cluster: newClusterFlags()}))
	for _, args := range [][]string{{"completion"}, {"completion", "frobnicate"}, {"help", "frobnicate"}, {"help", "delete", "frobnicate"}} {
		isRefused(args...)
	}
	for _, args := range [][]string{{}, {"help"}, {"help", "delete"}, {"help", "verify"}, {"completion", "--help"}} {
		isHelped(args...)
	}
	if walked < 18 {
		t.Errorf("walked %d commands only", walked)
	}
}

// TestProgressPrintsLastMessageOnce expects the last progress message to be printed once.
func TestProgressPrintsLastMessageOnce(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out)
	p.update("%d/%d ready", 10, 10)
	p.finish()
	if got := out.String(); got != "10/10 ready\n" {
		t.Errorf("got %q", got)
	}
	out.Reset()
	p = newProgress(&out)
	p.update("0/1 ready, waiting for %s", "Tenant/shop (Invalid: one\ntwo\n)")
	p.finish()
	if got := out.String(); got != "0/1 ready, waiting for Tenant/shop (Invalid: one; two; )\n" {
		t.Errorf("got %q", got)
	}
	out.Reset()
	p = newProgress(&out)
	p.update("1/2 ready")
	p.update("2/2 ready") // too soon for another line
	p.finish()
	if got := out.String(); got != "1/2 ready\n2/2 ready\n" {
		t.Errorf("got %q", got)
	}
}
