package run

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // as in kubectl's own main package
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// ExecuteKubectl runs kubectl's own main function. It does not return if the command
// fails.
func ExecuteKubectl(kubeconfig string, args []string) error {
	if err := os.Setenv("KUBECONFIG", kubeconfig); err != nil {
		return err
	}
	resetSignals()
	showLinkedFlags()
	os.Args = append([]string{"kubectl"}, args...)
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args)) // a bad level is reported when the flags are parsed
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
	return nil
}
