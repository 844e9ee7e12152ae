package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// refuseUnknownCommands makes every group of commands answer an unknown or a missing subcommand with
// a one-line error. By default, cobra prints the help and succeeds. Only `croft` without
// arguments prints its help, as kubectl does.
func refuseUnknownCommands(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		switch {
		case c.Name() == "help" && c.Parent() == root:
			c.Run, c.RunE = nil, printHelp
		case c.HasParent() && c.HasSubCommands() && !c.Runnable():
			c.Args, c.RunE = cobra.ArbitraryArgs, rejectSubcommand
		}
	}
	walk(root)
}

// rejectSubcommand returns the error for a group without a valid subcommand.
func rejectSubcommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s needs a subcommand: write one of %s", c.CommandPath(), strings.Join(listCommands(c), ", "))
	}
	return errUnknownCommand(c, args[0])
}

func errUnknownCommand(c *cobra.Command, word string) error {
	return fmt.Errorf("unknown command %q for %q: write one of %s", word, c.CommandPath(), strings.Join(listCommands(c), ", "))
}

func listCommands(c *cobra.Command) []string {
	var names []string
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	return names
}

// printHelp prints the help of a command, or reports an unknown one.
func printHelp(c *cobra.Command, args []string) error {
	found, rest, err := c.Root().Find(args)
	if err != nil || found == nil || len(rest) > 0 {
		if found == nil {
			found = c.Root()
		}
		word := strings.Join(args, " ")
		if len(rest) > 0 {
			word = rest[0]
		}
		return errUnknownCommand(found, word)
	}
	found.InitDefaultHelpFlag()
	return found.Help()
}

// requireOneName accepts exactly one argument, a name.
func requireOneName(of string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return fmt.Errorf("%s: write the name of the %s", c.CommandPath(), of)
		case len(args) > 1:
			return fmt.Errorf("%s: write the name of one %s, not of %d", c.CommandPath(), of, len(args))
		case args[0] == "":
			return errors.New("the name of the " + of + " is empty")
		default:
			return nil
		}
	}
}
