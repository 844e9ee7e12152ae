// Package karpenter reads Provisioners and NodePools, which become pools.
package karpenter
