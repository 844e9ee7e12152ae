package cli_test

import (
	"strings"
	"testing"
)

// TestLogFlags expects bad levels and formats to be one line with the allowed values.
func TestLogFlags(t *testing.T) {
	for line, want := range map[string]string{
		"operator --log-level loud":               `croft operator: --log-level "loud": write a valid value: "loud" is no level: the levels are debug, info, warn and error`,
		"agent --node a --log-level info,x=loud":  `"loud" is no level: the levels are debug, info, warn and error`,
		"proxy --log-format yaml":                 `croft proxy: --log-format "yaml": write a valid value: "yaml" is no format: the formats are json and text`,
		"operator --log-level debug --log-format": "croft operator: --log-format needs a value",
	} {
		t.Run(line, func(t *testing.T) {
			status, stdout, stderr := run(t, "", strings.Fields(line)...)
			if status != 2 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) {
				t.Errorf("exit status %d: %s%s\nwant %s", status, stdout, stderr, want)
			}
		})
	}
}
