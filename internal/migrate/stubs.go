package migrate

const (
	capsuleGroup     = "capsule.clastix.io"
	constraintsGroup = "constraints.gatekeeper.sh"
)

func (d *draft) capsuleSelectors() map[string]bool { return nil }
func (d *draft) declared()                         {}
func (d *draft) rules()                            {}
func (d *draft) capsuleTenants()                   {}
func (d *draft) domains()                          {}
func (d *draft) namespaceObjects()                 {}
func (d *draft) access()                           {}
func (d *draft) quotas()                           {}
func (d *draft) networks()                         {}
