// Package iam generates the AWS resources that an estate's pools need: the rights of
// Karpenter's controller and the accounts that may have them, the nodes' roles, their
// access entries in the cluster, and the queue for interruption events.
//
// The rights are exactly those that Karpenter's AWS provider, version 1.14, uses. All
// functions are pure, except Decode.
package iam
