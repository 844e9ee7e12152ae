// Package iam generates the AWS resources that an estate's pools need: the rights of
// Karpenter's controller and the accounts that may have them, the nodes' roles, their
// access entries in the cluster, and the queue for interruption events.
//
// Karpenter's AWS provider, version 1.14, uses each of the rights, and no others. All
// functions are pure, except Decode.
package iam
