package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"croft.dev/croft/sandbox/internal/home"
)

// followPause is the interval between two reads of a followed log.
const followPause = 200 * time.Millisecond

func newLogs(g *global) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs COMPONENT",
		Short: "Print the log of a component, or of the supervisor",
		Args:  checkArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := g.findExisting()
			if err != nil {
				return err
			}
			return printLog(cmd.Context(), cmd.OutOrStdout(), h, args[0], follow)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "continue with new lines as they are written")
	return cmd
}

func printLog(ctx context.Context, out io.Writer, h home.Home, component string, follow bool) error {
	f, err := os.Open(h.Log(filepath.Base(component)))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no log of %q: choose from %s", component, strings.Join(listLogs(h), ", "))
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		if _, err := io.Copy(out, f); err != nil || !follow {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followPause):
		}
	}
}

func listLogs(h home.Home) []string {
	files, _ := filepath.Glob(h.Log("*")) // the pattern is valid
	for i, file := range files {
		files[i] = strings.TrimSuffix(filepath.Base(file), ".log")
	}
	return files
}
