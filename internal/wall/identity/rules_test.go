package identity_test

import (
	"testing"

	"croft.dev/croft/internal/wall/ruletest"
)

// TestRules tries each rule of this wall by itself.
func TestRules(t *testing.T) { ruletest.Run(t, "testdata/rules") }
