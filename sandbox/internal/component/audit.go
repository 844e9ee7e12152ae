package component

// auditMegabytes is more than any test's log: a new file would be begun after it.
const auditMegabytes = "10000"

// auditArgs have the API server keep an audit log, if the sandbox has an audit policy.
func (s *Sandbox) auditArgs() []string {
	if s.config.AuditPolicy == "" {
		return nil
	}
	return []string{
		"--audit-policy-file=" + s.config.AuditPolicy,
		"--audit-log-path=" + s.home.Path("audit.log"),
		"--audit-log-maxsize=" + auditMegabytes,
	}
}
