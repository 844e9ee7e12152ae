package proxy

// namespaces is the collection of the cluster's namespaces. Each user sees the namespaces
// that they may get.
type namespaces struct {
	*collection
	access *visibility
}

func newNamespaces() *namespaces {
	v := newVisibility()
	return &namespaces{newCollection(newNamespaceKind(), v), v}
}

// applyAccessChange records that the set of users who may get some namespaces changed at a
// resource version, and notifies watches.
func (n *namespaces) applyAccessChange(version uint64, c accessChange) {
	revoked := map[string][]subject{}
	for _, namespace := range c.namespaces {
		names := []string{namespace}
		if namespace == "" {
			names = n.listNames()
		}
		for _, name := range names {
			revoked[name] = c.listRevokedFor(name)
		}
	}
	n.changeAccess(version, revoked)
}
