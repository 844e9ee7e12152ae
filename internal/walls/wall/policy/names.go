package policy

// The names of policies and rules that other packages and attacks in Go refer to. Their folders and files
// in rules have the same names.
const (
	AccountsPolicy    = "croft-accounts"
	AnnotationsPolicy = "croft-annotations"
	ClaimsPolicy      = "croft-volume-claims"
	FinalizersPolicy  = "croft-finalizers"
	NamespacesPolicy  = "croft-namespaces"
	ProtectionPolicy  = "croft-protection"
	SizesPolicy       = "croft-sizes"
	TerminationPolicy = "croft-termination"
)

// The names of rules.
const (
	AnnotatedHostsRule    = "annotated-hosts"
	ClaimTemplatesRule    = "claim-templates"
	GracePeriodRule       = "grace-period"
	NamespaceDeletionRule = "deletion"
	NamespaceFinalizeRule = "finalize"
	NamespaceMarksRule    = "marks"
	OwnersRule            = "owners"
	ProtectionRule        = "managed-objects"
	PullPolicyRule        = "pull-policy"
	RegistryRule          = "registry"
	SizeRule              = "size"
	StorageClassRule      = "storage-class"
	TokenExpirationRule   = "token-expiration"
	VolumeRule            = "volume-name"
	VolumeTypesRule       = "volume-types"
)
