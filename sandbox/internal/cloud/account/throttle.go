package account

import (
	"strings"
	"time"
)

// rate is the limit of the calls of an action: the burst, and the refill a second.
type rate struct{ burst, refill float64 }

// The rates of EC2's API, for each action of an account in a region: "Request
// throttling for the Amazon EC2 API" in its developer guide.
var (
	reading    = rate{100, 20}
	unfiltered = rate{50, 10}
	changing   = rate{50, 5}
)

// limited are the actions that have a limit here: the actions on network interfaces. Karpenter's
// own calls do not come near the limits.
var limited = map[string]bool{
	"ec2:CreateNetworkInterface": true, "ec2:AttachNetworkInterface": true, "ec2:DetachNetworkInterface": true,
	"ec2:DeleteNetworkInterface": true, "ec2:ModifyNetworkInterfaceAttribute": true, "ec2:DescribeNetworkInterfaces": true,
	"ec2:AssignPrivateIpAddresses": true, "ec2:UnassignPrivateIpAddresses": true,
}

// bucket is the token bucket of an action.
type bucket struct {
	tokens float64
	filled time.Time
}

// SpendToken takes a token for a call, and reports whether there was one. narrow means that a call
// that reads has a filter or a page size. A refused call takes no token.
func (a *Account) SpendToken(action string, narrow bool) bool {
	if !limited[action] {
		return true
	}
	r := changing
	if strings.HasPrefix(action, "ec2:Describe") {
		if r = reading; !narrow {
			action, r = action+" (unfiltered)", unfiltered
		}
	}
	now := a.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.buckets[action]
	if b == nil {
		b = &bucket{tokens: r.burst, filled: now}
		a.buckets[action] = b
	}
	b.tokens = min(r.burst, b.tokens+now.Sub(b.filled).Seconds()*r.refill*max(a.Speed, 1))
	b.filled = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
