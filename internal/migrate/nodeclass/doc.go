// Package nodeclass reads what a pool's nodes are made from: AWSNodeTemplates of v1alpha1
// and EC2NodeClasses. They become node classes in croft.yaml where it has words for all
// that they say, and EC2NodeClasses beside it otherwise.
package nodeclass
