package cli

import (
	"context"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/declare/version"
	"croft.dev/croft/internal/operate/heartbeat"
)

// versionPatience is the time limit of `croft version` for a cluster's answer.
const versionPatience = 5 * time.Second

// versionReport is the output of `croft version`.
type versionReport struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Operator is the version of the cluster's operator. It is empty without a cluster, and
	// if the operator's heartbeat has no version.
	Operator string `json:"operator,omitempty"`
	// Skew describes the difference of the two versions; empty if they are equal.
	Skew string `json:"skew,omitempty"`
	// Unknown is the reason why the operator's version is not known, if a cluster was
	// asked.
	Unknown string `json:"unknown,omitempty"`
}

func newVersion(a *app) *cobra.Command {
	var (
		output format
		alone  bool
	)
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of croft and of the cluster's operator",
		Long: `Print croft's version, and the version of the cluster's operator. If they differ, one
line describes the remedy. Without a kubeconfig, or with --client, the command uses no
cluster. The exit status is 0 even if the cluster does not answer.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := versionReport{Version: version.String(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
			if !alone {
				a.readOperatorVersion(cmd.Context(), &v)
			}
			if output != formatTable {
				return output.print(a.out, v)
			}
			printSafely(a.out, "croft %s (%s, %s)\n", v.Version, v.Go, v.Platform)
			switch {
			case v.Operator != "":
				printSafely(a.out, "operator %s\n", v.Operator)
			case v.Unknown != "":
				printSafely(a.err, "operator unknown: %s\n", v.Unknown)
			}
			if v.Skew != "" {
				printSafely(a.err, "%s\n", v.Skew)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&alone, "client", false, "print only this croft's version, and use no cluster")
	refusePointlessFlags(c, "--client uses no cluster", func() bool { return alone }, clusterFlagNames...)
	output.addFlags(c, formatTable, formatJSON, formatYAML)
	return c
}

// readOperatorVersion reads the operator's version from the cluster, if one is configured.
func (a *app) readOperatorVersion(ctx context.Context, v *versionReport) {
	config, err := a.loadConfig()
	if err != nil {
		return
	}
	config.Timeout = versionPatience // the limit of each request; discovery takes no context
	ctx, cancel := context.WithTimeout(ctx, versionPatience)
	defer cancel()
	c, err := client.New(config, client.Options{Scheme: scheme.New()})
	var beat heartbeat.Beat
	if err == nil {
		beat, err = heartbeat.Read(ctx, c)
	}
	switch {
	case err != nil:
		v.Unknown = explainUnreachable(err).Error()
	case beat.Version == "":
		v.Unknown = beat.Describe(time.Now())
	default:
		v.Operator, v.Skew = beat.Version, version.Skew(v.Version, beat.Version)
	}
}
