// Command clidoc writes the generated part of docs/reference/cli.md: every command with its
// flags. It reads the document from the first argument and writes it to the second. `make
// generate` calls it.
package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"croft.dev/croft/hack/internal/document"
	"croft.dev/croft/internal/cli"
)

func main() { document.Main(generate) }

func generate() (string, error) {
	root := cli.Tree()
	root.InitDefaultCompletionCmd()
	var b strings.Builder
	fmt.Fprintf(&b, "\n## Flags of every command\n\n```\n%s```\n\n## Commands\n\n| command | purpose |\n|---|---|\n", root.PersistentFlags().FlagUsages())
	commands := listCommands(root)
	for _, c := range commands {
		anchor := strings.ReplaceAll(c.CommandPath(), " ", "-")
		fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", c.CommandPath(), anchor, strings.ReplaceAll(c.Short, "|", `\|`))
	}
	for _, c := range commands {
		writeCommand(&b, c)
	}
	return b.String(), nil
}

// listCommands returns all commands below a command that do something themselves.
func listCommands(parent *cobra.Command) []*cobra.Command {
	var commands []*cobra.Command
	for _, c := range parent.Commands() {
		if !c.IsAvailableCommand() {
			continue
		}
		if c.Runnable() {
			commands = append(commands, c)
		}
		commands = append(commands, listCommands(c)...)
	}
	return commands
}

// writeCommand writes a command's help, without the flags of every command.
func writeCommand(b *strings.Builder, c *cobra.Command) {
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	fmt.Fprintf(b, "\n## %s\n\n```\n%s\n\nUsage:\n  %s\n", c.CommandPath(), strings.TrimSpace(text), c.UseLine())
	if c.Example != "" {
		fmt.Fprintf(b, "\nExamples:\n%s\n", strings.TrimRight(c.Example, "\n"))
	}
	if flags := c.NonInheritedFlags().FlagUsages(); flags != "" {
		fmt.Fprintf(b, "\nFlags:\n%s", flags)
	}
	b.WriteString("```\n")
}
