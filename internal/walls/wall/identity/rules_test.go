package identity_test

import (
	"testing"

	"croft.dev/croft/internal/walls/wall/ruletest"
)

// TestRules tests each rule of this wall alone.
func TestRules(t *testing.T) { ruletest.Run(t) }
