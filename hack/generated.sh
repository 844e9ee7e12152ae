#!/usr/bin/env bash
# Fails if anything that `make generate` writes differs from what is checked in.
set -euo pipefail
cd "$(dirname "$0")/.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
hack/generate.sh "$fresh"
stale=$(cd "$fresh" && find . -type f | while read -r f; do cmp -s "$f" "$OLDPWD/$f" || echo "  ${f#./}"; done)
if [ -n "$stale" ]; then
  printf 'these files differ from the generated ones; run `make generate` and commit them:\n%s\n' "$stale" >&2
  exit 1
fi
