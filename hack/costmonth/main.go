// Command costmonth writes a simulated month of two teams into an empty directory of croft ledger, for
// `make demo COST=1`, and prints its cost by weeks. Only the nodes, pods, volumes and load balancers are
// simulated: each hour is computed and stored by the packages of croft ledger.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/price"
	"croft.dev/croft/internal/cost/store"
)

const (
	day = 24 * time.Hour
	// days is the length of the simulation: each calendar month until now is complete.
	days     = 31
	weekDays = 7
)

func main() {
	directory := flag.String("data-dir", "", "directory of croft ledger, which must not exist or be empty")
	file := flag.String("prices", "", "file of the platform's prices")
	flag.Parse()
	if err := run(os.Stdout, *directory, *file, time.Now()); err != nil {
		fmt.Fprintln(os.Stderr, "costmonth:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, directory, file string, now time.Time) error {
	if directory == "" || file == "" {
		return errors.New("write --data-dir and --prices")
	}
	// A ledger's own hours would be lost.
	if entries, err := os.ReadDir(directory); err == nil && len(entries) > 0 {
		return fmt.Errorf("--data-dir %s: the directory is not empty: name another one", directory)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	prices, err := price.Parse(filepath.Base(file), data)
	if err != nil {
		return err
	}
	until := now.UTC().Truncate(time.Hour)
	period := ledger.Span{From: until.Add(-days * day), Until: until}
	l, err := ledger.New(simulateObjects(period, prices))
	if err != nil {
		return err
	}
	s, err := store.Open(directory, func(string, error) {}) // no file exists yet
	if err != nil {
		return err
	}
	if err := s.Lead(store.Leader{Identity: "simulation"}); err != nil {
		return err
	}
	var weeks []week
	for i, span := range ledger.Split(period) {
		record := computeRecord(l, span, prices.Currency)
		if err := s.WriteHour(record); err != nil {
			return err
		}
		if i%(weekDays*24) == 0 {
			weeks = append(weeks, week{from: span.From, byTenant: map[string]money.Amount{}})
		}
		weeks[len(weeks)-1].addRecord(&record)
	}
	if err := s.Maintain(until); err != nil {
		return err
	}
	return printWeeks(w, weeks, prices.Currency)
}

// computeRecord computes an hour as croft ledger does. Each team has a pool of its own.
func computeRecord(l *ledger.Ledger, span ledger.Span, currency string) store.Record {
	hour := l.Compute(span)
	return store.Record{
		Span: span, Currency: currency, Nodes: hour.Nodes, Volumes: hour.Volumes, LoadBalancers: hour.LoadBalancers, Rows: hour.Rows,
		Exclusive: []store.Exclusive{{Pool: webTeam.pool, Tenant: webTeam.tenant}, {Pool: jobTeam.pool, Tenant: jobTeam.tenant}},
	}
}

// week is the cost of seven days, or of the last ones.
type week struct {
	from, until time.Time
	byTenant    map[string]money.Amount
	// idle is the part of the total that is idle cost.
	total, idle money.Amount
}

func (w *week) addRecord(r *store.Record) {
	w.until = r.Until
	w.total += r.Nodes + r.Volumes + r.LoadBalancers
	for i := range r.Rows {
		row := &r.Rows[i]
		w.idle += row.Idle
		if row.Kind == ledger.Tenant {
			w.byTenant[row.Tenant] += row.Cost + row.Idle
		}
	}
}

func printWeeks(w io.Writer, weeks []week, currency string) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	// Flush returns the error of any preceding write.
	_, _ = fmt.Fprintf(table, "SIMULATED\tUNTIL\t%s\t%s\tTOTAL %s\tOF WHICH IDLE\n", webTeam.tenant, jobTeam.tenant, currency)
	sum := week{byTenant: map[string]money.Amount{}}
	printLine := func(from, until string, w *week) {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", from, until, w.byTenant[webTeam.tenant].Format(2), w.byTenant[jobTeam.tenant].Format(2),
			w.total.Format(2), w.idle.Format(2))
	}
	for i := range weeks {
		one := &weeks[i]
		printLine(one.from.Format(time.DateOnly), one.until.Format(time.DateOnly), one)
		sum.total += one.total
		sum.idle += one.idle
		for tenant, amount := range one.byTenant {
			sum.byTenant[tenant] += amount
		}
	}
	printLine(fmt.Sprintf("%d days", days), "", &sum)
	return table.Flush()
}
