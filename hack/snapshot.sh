#!/usr/bin/env bash
# Keeps the objects of a release for TestUpgrade: its chart, an example's croft.yaml, and
# the walls that its operator writes for it. Run once at a release, on its commit, after
# `make build`: hack/snapshot.sh v0.1.0. The same commit writes the same files.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?usage: hack/snapshot.sh vMAJOR.MINOR.PATCH}
to=internal/test/e2e/testdata/releases/$version
example=examples/two-tenants.yaml

if ! grep -qx "appVersion: $version" charts/croft/Chart.yaml; then
  echo "charts/croft/Chart.yaml: appVersion is not $version: set version and appVersion first" >&2
  exit 2
fi
mkdir -p "$to"
cp "$example" "$to/croft.yaml"
# Without names and times, by which two archives of the same files would differ.
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r -cf - -C charts croft | gzip -9n > "$to/chart.tgz"
bin/croft render -f "$example" | gzip -9n > "$to/walls.yaml.gz"
ls -l "$to"
