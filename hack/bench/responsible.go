package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"k8s.io/client-go/rest"

	"croft.dev/croft/hack/internal/metrics"
)

const (
	// namingTarget is the time within which `croft doctor` should name the tenant that causes a flood, and
	// namingTimeout the time after which the benchmark no longer waits for it.
	namingTarget, namingTimeout = 30 * time.Second, time.Minute
	// storageMetric is the size of etcd's database file. The API server reads it from etcd for each scrape.
	storageMetric = "apiserver_storage_size_bytes"
)

// naming has the runs of `croft doctor` during a flood, one after the other, until one names the tenant.
type naming struct {
	// Seconds is the time from the start of the flood to the end of the last run.
	Seconds float64 `json:"seconds"`
	Runs    int     `json:"runs"`
	Named   bool    `json:"named"`
	// Failure is the last run's failure.
	Failure string `json:"failure,omitempty"`
}

// awaitNaming runs `croft doctor load` until it names the neighbour. start is the start of the flood.
func (n *neighbours) awaitNaming(ctx context.Context, start time.Time) *naming {
	ctx, cancel := context.WithDeadline(ctx, start.Add(namingTimeout))
	defer cancel()
	found := &naming{}
	for !found.Named && ctx.Err() == nil {
		pause(ctx, restPoll)
		var err error
		found.Named, err = n.runDoctor(ctx)
		found.Runs++
		found.Seconds, found.Failure = time.Since(start).Seconds(), ""
		if err != nil {
			found.Failure = err.Error()
		}
	}
	return found
}

func (n *neighbours) runDoctor(ctx context.Context) (named bool, err error) {
	// The exit status is 1 if there are problems.
	output, failure := exec.CommandContext(ctx, n.croft, "doctor", "load", "--kubeconfig", n.kubeconfig, "-o", "json").Output()
	if named, err = isNamed(output, neighbourTeam); err != nil {
		err = errors.Join(failure, err)
	}
	return named, err
}

// isNamed reports whether `croft doctor -o json` names a tenant as the cause of waiting work.
func isNamed(output []byte, tenant string) (bool, error) {
	var report struct {
		Checks []struct {
			Check    string `json:"check"`
			Findings []struct {
				Object string `json:"object"`
			} `json:"findings"`
		} `json:"checks"`
	}
	if err := json.Unmarshal(output, &report); err != nil {
		return false, fmt.Errorf("the output of croft doctor: %w", err)
	}
	for _, c := range report.Checks {
		for _, f := range c.Findings {
			if c.Check == "load" && f.Object == "Tenant/"+tenant {
				return true, nil
			}
		}
	}
	return false, nil
}

// compareNaming returns the row of a flood during which `croft doctor` ran, or none.
func (r floodResult) compareNaming() []comparison {
	if r.Naming == nil {
		return nil
	}
	row := comparison{
		Name: r.Flood + ": until croft doctor names the tenant", Unit: inSeconds, Croft: r.Naming.Seconds, Alternative: namingTarget.Seconds(),
		Note: fmt.Sprintf("compared with the target; from the start of the flood; runs of the command, one after the other: %d", r.Naming.Runs),
	}
	if !r.Naming.Named {
		row.Note = "NOT NAMED; " + row.Note
	}
	if r.Naming.Failure != "" {
		row.Note += "; the last one failed: " + r.Naming.Failure
	}
	return []comparison{row}
}

// storage is the size of etcd's database before and at the end of a flood.
type storage struct {
	Before float64 `json:"beforeBytes"`
	After  float64 `json:"afterBytes"`
}

// readStorage returns the size of etcd's database.
func (n *neighbours) readStorage(ctx context.Context) (float64, error) {
	c, err := rest.HTTPClientFor(n.config)
	if err != nil {
		return 0, err
	}
	return metrics.SumSelected(ctx, c, n.config.Host+"/metrics", storageMetric, func(map[string]string) bool { return true })
}

// compareStorage returns the rows of a flood that fills etcd, or none. bare is the same flood without croft, or nil.
func (r floodResult) compareStorage(bare *floodResult) []comparison {
	if r.Storage == nil {
		return nil
	}
	rows := []comparison{{
		Name: r.Flood + ": etcd's database", Unit: inBytes, Croft: r.Storage.After, Alternative: r.Storage.Before,
		Note: "at the end of the flood, with the versions that etcd keeps for five minutes; compared with before",
	}}
	if bare != nil {
		rows = append(rows, comparison{
			Name: "  and without croft", Unit: inBytes, Croft: r.Storage.After, Alternative: bare.Storage.After,
			Note: "compared with the same flood without croft",
		})
	}
	return rows
}
