package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"croft.dev/croft/internal/declare/wording"
)

// kubectlVerbs maps kubectl's commands to croft's equivalents, for users who try them.
var kubectlVerbs = map[string]string{
	"get":      "`kubectl get %s`, or `croft status`",
	"describe": "`kubectl describe %s`, or `croft status tenant/NAME`",
	"create":   "`croft apply -f FILE`",
	"edit":     "your file, and then `croft apply -f FILE`",
	"patch":    "your file, and then `croft apply -f FILE`",
	"logs":     "`kubectl logs %s`",
	"exec":     "`kubectl exec %s`",
	"explain":  "`kubectl explain %s`",
	"rollout":  "`kubectl rollout %s`",
	"drain":    "`kubectl drain %s`",
	"remove":   "`croft delete tenant NAME`, or `croft uninstall`",
	"init":     "`croft install`",
	"upgrade":  "`croft install --image IMAGE`, or `helm upgrade`",
	"template": "`croft render -f FILE`",
	"plan":     "`croft diff -f FILE`",
	"validate": "`croft check -f FILE`",
	"lint":     "`croft check -f FILE`",
}

// explainUsage turns errors of cobra and pflag into one line with the command, the mistake
// and the remedy. It returns other errors unchanged.
func explainUsage(c *cobra.Command, args []string, err error) error {
	if err == nil || c == nil {
		return err
	}
	path := c.CommandPath()
	var (
		unknown *pflag.NotExistError
		empty   *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
		syntax  *pflag.InvalidSyntaxError
	)
	switch {
	case errors.As(err, &unknown):
		return explainUnknownFlag(c, unknown)
	case errors.As(err, &empty):
		return fmt.Errorf("%s: %s needs a value: %s", path, formatFlagName(empty.GetFlag()), empty.GetFlag().Usage)
	case errors.As(err, &invalid):
		return fmt.Errorf("%s: %s %q: write %s", path, formatFlagName(invalid.GetFlag()), invalid.GetValue(), describeValues(invalid))
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: %s is not a flag: `%[1]s --help` lists the flags", path, syntax.GetSpecifiedFlag())
	case !c.HasParent() && strings.HasPrefix(err.Error(), "unknown command "):
		return explainUnknownCommand(c, args, err)
	}
	return explainArguments(c, err)
}

func explainUnknownFlag(c *cobra.Command, err *pflag.NotExistError) error {
	if shorthands := err.GetSpecifiedShortnames(); shorthands != "" {
		return fmt.Errorf("%s: unknown flag -%s: `%[1]s --help` lists the flags", c.CommandPath(), err.GetSpecifiedName())
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	hint := ": `" + c.CommandPath() + " --help` lists the flags"
	if near, ok := wording.Nearest(err.GetSpecifiedName(), names); ok {
		hint = "; did you mean --" + near + "?"
	}
	return fmt.Errorf("%s: unknown flag: --%s%s", c.CommandPath(), err.GetSpecifiedName(), hint)
}

func explainUnknownCommand(c *cobra.Command, args []string, err error) error {
	var word string
	if _, scanErr := fmt.Sscanf(err.Error(), "unknown command %q", &word); scanErr != nil {
		return err
	}
	if instead, ok := kubectlVerbs[word]; ok {
		if strings.Contains(instead, "%s") {
			instead = fmt.Sprintf(instead, strings.Join(args[min(1, len(args)):], " "))
		}
		return fmt.Errorf("croft has no command %s: write %s", word, instead)
	}
	if near, ok := wording.Nearest(word, listCommands(c)); ok {
		return fmt.Errorf("unknown command %q for %q; did you mean %s?", word, c.CommandPath(), near)
	}
	return errUnknownCommand(c, word)
}

// These match cobra's errors that have no type.
var (
	requiredFlags = regexp.MustCompile(`^required flag\(s\) (.*) not set$`)
	togetherFlags = regexp.MustCompile(`^if any flags in the group \[(.*)\] are set they must all be set; missing \[(.*)\]$`)
	oneOfFlags    = regexp.MustCompile(`^at least one of the flags in the group \[(.*)\] is required$`)
	apartFlags    = regexp.MustCompile(`^if any flags in the group \[.*\] are set none of the others can be; \[(.*)\] were all set$`)
	wrongCount    = regexp.MustCompile(`^(accepts|requires) .* arg\(s\), (only )?received`)
)

func explainArguments(c *cobra.Command, err error) error {
	text, path := err.Error(), c.CommandPath()
	flags := func(list string) []string {
		names := strings.Fields(strings.NewReplacer(`"`, "", ",", "").Replace(list))
		for i, name := range names {
			names[i] = formatFlagName(c.Flag(name))
		}
		return names
	}
	switch {
	case requiredFlags.MatchString(text):
		missing := flags(requiredFlags.FindStringSubmatch(text)[1])
		return fmt.Errorf("%s: required flag %s is not set: write %s", path, wording.Enumerate(missing, "and"), c.UseLine())
	case togetherFlags.MatchString(text):
		match := togetherFlags.FindStringSubmatch(text)
		return fmt.Errorf("%s: %s is not set: %s go together", path, wording.Enumerate(flags(match[2]), "and"), wording.Enumerate(flags(match[1]), "and"))
	case oneOfFlags.MatchString(text):
		return fmt.Errorf("%s: write one of %s", path, wording.Enumerate(flags(oneOfFlags.FindStringSubmatch(text)[1]), "and"))
	case apartFlags.MatchString(text):
		return fmt.Errorf("%s: %s exclude each other: write one of them", path, wording.Enumerate(flags(apartFlags.FindStringSubmatch(text)[1]), "and"))
	case strings.HasPrefix(text, "unknown command "):
		var word string
		_, _ = fmt.Sscanf(text, "unknown command %q", &word)
		if c.HasSubCommands() {
			return err
		}
		return fmt.Errorf("%s: unexpected argument %q: write %s", path, word, c.UseLine())
	case wrongCount.MatchString(text):
		return fmt.Errorf("%s: wrong number of arguments: write %s", path, c.UseLine())
	}
	return err
}

// formatFlagName returns a flag as users write it: "--filename (-f)".
func formatFlagName(f *pflag.Flag) string {
	switch {
	case f == nil:
		return "a flag"
	case f.Shorthand != "":
		return "--" + f.Name + " (-" + f.Shorthand + ")"
	default:
		return "--" + f.Name
	}
}

// describeValues describes the values that a flag accepts.
func describeValues(err *pflag.InvalidValueError) string {
	switch err.GetFlag().Value.Type() {
	case "duration":
		return "a duration, such as 30s, 10m or 1h"
	case "bool":
		return "true or false"
	case "int", "int32", "int64", "uint", "uint16", "uint32":
		return "a whole number"
	default:
		return "a valid value: " + err.Unwrap().Error()
	}
}
