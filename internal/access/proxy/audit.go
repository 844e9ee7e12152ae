package proxy

import (
	"io"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	auditlog "k8s.io/apiserver/plugin/pkg/audit/log"
)

// Audit configures the audit log, in the API server's own format: one audit.k8s.io/v1 event
// as JSON per line. An event has the same audit ID as the API server's event for the
// request.
type Audit struct {
	// Out receives the events. If it is nil, nothing is recorded.
	Out io.Writer
	// PolicyFile is the path of an audit.k8s.io/v1 Policy. By default the metadata of each
	// request is recorded when it completes.
	PolicyFile string
}

// defaultPolicy records the user, the request and the response status, but no bodies.
var defaultPolicy = &auditinternal.Policy{
	Rules: []auditinternal.PolicyRule{{
		Level: auditinternal.LevelMetadata, OmitStages: []auditinternal.Stage{auditinternal.StageRequestReceived},
	}},
}

// newSink returns the audit backend and the policy evaluator; both are nil if nothing is
// recorded.
func (a Audit) newSink() (audit.Sink, audit.PolicyRuleEvaluator, error) {
	if a.Out == nil {
		return nil, nil, nil
	}
	rules := defaultPolicy
	if a.PolicyFile != "" {
		var err error
		if rules, err = policy.LoadPolicyFromFile(a.PolicyFile); err != nil {
			return nil, nil, err
		}
	}
	return auditlog.NewBackend(a.Out, auditlog.FormatJson, auditv1.SchemeGroupVersion), policy.NewPolicyRuleEvaluator(rules), nil
}
