// Package nodeclass reads the node classes of pools: AWSNodeTemplates of v1alpha1 and
// EC2NodeClasses. They become node classes in croft.yaml if it has fields for all of their
// settings, and separate EC2NodeClasses otherwise.
package nodeclass
