package v1alpha1

// Source is a source of manifests that Flux fetches and applies for the tenant. Flux acts
// as the service account croft-deployer, which has the rights of the role operator in the
// tenant's namespaces, and no others.
//
// +kubebuilder:validation:XValidation:rule="has(self.git) != has(self.oci)",message="set exactly one of git and oci"
// +kubebuilder:validation:XValidation:rule="!has(self.branch) || has(self.git)",message="branch is for git; an OCI artifact has a tag"
// +kubebuilder:validation:XValidation:rule="!has(self.branch) || !has(self.tag)",message="set branch or tag, not both"
type Source struct {
	// Git is the URL of a Git repository, such as https://git.example.org/shop/deploy or
	// ssh://git@git.example.org/shop/deploy, at one of the tenant's policy.sourceHosts.
	// It must not contain a password: use secretRef.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^(https?|ssh)://[^/]+/[^ ]+$')",message="must be the URL of a Git repository, such as https://git.example.org/shop/deploy or ssh://git@git.example.org/shop/deploy"
	// +optional
	Git string `json:"git,omitempty"`
	// OCI is the URL, without a tag, of an OCI artifact from flux push artifact, such as
	// oci://registry.example.org/shop/deploy.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^oci://[^/@]+/[a-z0-9._/-]+$')",message="must be the URL of an OCI artifact without a tag, such as oci://registry.example.org/shop/deploy"
	// +optional
	OCI string `json:"oci,omitempty"`
	// Branch is the branch of the Git repository to apply. Defaults to main.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Branch string `json:"branch,omitempty"`
	// Tag is the tag of the Git repository, or of the OCI artifact, to apply. Defaults to
	// latest for an OCI artifact.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Tag string `json:"tag,omitempty"`
	// Path is the directory of the manifests, or of kustomization.yaml. Defaults to ./,
	// the top.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[.]/[^ ]*$') && !self.split('/').exists(part, part == '..')",message="must be a directory of the source that begins with ./ and contains no .., such as ./deploy"
	// +optional
	Path string `json:"path,omitempty"`
	// Interval is the time between Flux's checks for a new revision. Defaults to 1m.
	// +optional
	Interval SourceInterval `json:"interval,omitempty"`
	// Timeout is how long Flux waits for applied objects to be ready. Defaults to 5m; at
	// most 1h. While it waits, Flux serves fewer other sources.
	// +optional
	Timeout SourceTimeout `json:"timeout,omitempty"`
	// SecretRef names the Secret with the credentials for the source, in the source's
	// namespace and in Flux's format.
	// +optional
	SecretRef *SourceSecret `json:"secretRef,omitempty"`
	// Namespace is the tenant's namespace that manifests are applied to and that contains
	// Flux's objects. Defaults to the first. Manifests that name another namespace are
	// applied to this one, too.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Webhook applies a push at once: the Git server or registry calls the path in the
	// status of the Receiver croft-NAME. Without it, a push waits for interval.
	// +optional
	Webhook *SourceWebhook `json:"webhook,omitempty"`
}

// SourceInterval is a duration of 30 seconds or more.
//
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s))+$') && duration(self) >= duration('30s')",message="must be a duration of 30s or more, such as 1m or 10m"
type SourceInterval string

// SourceTimeout is a duration of an hour at most.
//
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s))+$') && duration(self) > duration('0s') && duration(self) <= duration('1h')",message="must be a duration of at most 1h, such as 5m"
type SourceTimeout string

// SourceSecret names a Secret.
type SourceSecret struct {
	// Name is the Secret's name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// SourceWebhook is the sender that notifies Flux of changes.
type SourceWebhook struct {
	// Type is the sender's type, as in Flux's Receivers.
	// +kubebuilder:validation:Enum=generic;generic-hmac;github;gitlab;bitbucket;harbor;dockerhub;quay;gcr;nexus;acr;cdevents
	// +required
	Type string `json:"type"`
	// SecretRef names the Secret, in the source's namespace, with the token that
	// authenticates the sender.
	// +required
	SecretRef SourceSecret `json:"secretRef"`
}
