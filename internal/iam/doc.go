// Package iam says what has to exist in AWS for an estate's pools: the rights of
// Karpenter's controller and who may have them, the roles of the nodes, their
// entries in the cluster, and the queue that tells of interruptions.
//
// The rights are those that Karpenter's provider for AWS, version 1.14, makes use
// of, and no more. Everything here is a pure function.
package iam
