#!/bin/sh
# Prints the linker flags that set the version of Kubernetes in the binary.
# Without them the API server reports a version that clients cannot parse.
#
#   go build -trimpath -ldflags "$(./ldflags.sh)" -o ../bin/croft-sandbox ./cmd/croft-sandbox
set -eu
cd "$(dirname "$0")"

version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
date=$(go list -m -f '{{.Time.Format "2006-01-02T15:04:05Z"}}' k8s.io/kubernetes)
minor=${version#v1.}

flags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  flags="$flags -X $package.gitVersion=$version"
  flags="$flags -X $package.gitMajor=1"
  flags="$flags -X $package.gitMinor=${minor%%.*}"
  flags="$flags -X $package.gitCommit=" # the module proxy does not provide the commit
  flags="$flags -X $package.gitTreeState=clean"
  flags="$flags -X $package.buildDate=$date"
done
echo "$flags"
