package component

// auditMegabytes is the size at which the API server begins a new file: more than any test logs.
const auditMegabytes = "10000"

// buildAuditArgs returns the API server's arguments for an audit log, if the sandbox has an audit
// policy.
func (s *Sandbox) buildAuditArgs() []string {
	if s.config.AuditPolicy == "" {
		return nil
	}
	return []string{
		"--audit-policy-file=" + s.config.AuditPolicy,
		"--audit-log-path=" + s.home.Path("audit.log"),
		"--audit-log-maxsize=" + auditMegabytes,
	}
}
