package cli

import (
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"croft.dev/croft/internal/declare/version"
	"croft.dev/croft/internal/prove/trial"
)

// formatSARIF is the format that code hosts show next to the lines of a change.
const formatSARIF format = "sarif"

// The parts of SARIF 2.1.0 that code hosts read.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		Results     []sarifResult     `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string    `json:"id"`
		ShortDescription sarifText `json:"shortDescription"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifInvocation struct {
		Successful    bool                `json:"executionSuccessful"`
		Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNotification struct {
		Level   string    `json:"level"`
		Message sarifText `json:"message"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
)

// changedRule is the ruleId of fields that the walls set, which violate no rule.
const changedRule = "changed"

// printSARIF writes a result for each rule that an object violates or is warned about, and
// one for each object that is changed.
func printSARIF(w io.Writer, report *trial.Report) error {
	run := sarifRun{
		Tool:    sarifTool{sarifDriver{Name: "croft try", Version: version.String(), Rules: []sarifRule{}}},
		Results: []sarifResult{}, Invocations: []sarifInvocation{{Successful: true}},
	}
	add := func(r trial.Result, id, about, level, text string, line int) {
		if !slices.ContainsFunc(run.Tool.Driver.Rules, func(known sarifRule) bool { return known.ID == id }) {
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{id, sarifText{about}})
		}
		run.Results = append(run.Results, sarifResult{
			RuleID: id, Level: level, Message: sarifText{r.Name() + ": " + text},
			Locations: []sarifLocation{{sarifPhysical{sarifArtifact{formatURI(r.File)}, sarifRegion{max(1, line)}}}},
		})
	}
	for _, r := range report.Results {
		for _, list := range []struct {
			level   string
			reasons []trial.Reason
		}{{"error", r.Refusals}, {"warning", r.Warnings}} {
			for _, reason := range list.reasons {
				id, about := reason.Source, "refusals and warnings of "+reason.Source
				if reason.Rule != "" {
					id, about = reason.Rule, "rule "+reason.Rule+" of croft's policies"
				}
				add(r, id, about, list.level, reason.Message, reason.Line)
			}
		}
		if len(r.Changes) > 0 {
			var fields []string
			for _, c := range r.Changes {
				fields = append(fields, fmt.Sprintf("%s: %s → %s", c.Path, dashIfEmpty(c.Before), dashIfEmpty(c.After)))
			}
			add(r, changedRule, "fields that the walls set", "note", strings.Join(fields, "; "), r.Line)
		}
	}
	for _, u := range report.Unknown {
		run.Invocations[0].Notifications = append(run.Invocations[0].Notifications, sarifNotification{"note", sarifText{"not known: " + u}})
	}
	return formatJSON.print(w, sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}})
}

// formatURI returns a file as a URI reference relative to the working directory, as code hosts
// require.
func formatURI(file string) string {
	uri := url.URL{Path: filepath.ToSlash(filepath.Clean(file))}
	if filepath.IsAbs(file) {
		uri.Scheme = "file"
	}
	return uri.String()
}
