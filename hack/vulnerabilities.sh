#!/usr/bin/env bash
# Looks for known vulnerabilities in every module: in its packages, or in its tools if it
# only pins tools. It queries https://vuln.go.dev. Arguments select modules.
set -euo pipefail
cd "$(dirname "$0")/.."
version=v1.9.0

mapfile -t modules < <(git ls-files 'go.mod' '*/go.mod' | xargs -n 1 dirname)
if [ $# -gt 0 ]; then modules=("$@"); fi
bin=$PWD/bin
GOBIN=$bin go install "golang.org/x/vuln/cmd/govulncheck@$version"
failed=()
for module in "${modules[@]}"; do
  printf '==> %s\n' "$module" >&2
  packages=$(cd "$module" && { go list ./... 2>/dev/null; go list tool 2>/dev/null; } | sort -u)
  # shellcheck disable=SC2086 # one argument for each package
  (cd "$module" && "$bin/govulncheck" $packages) || failed+=("$module")
done
[ ${#failed[@]} -eq 0 ] || { printf 'vulnerable, or not checked: %s\n' "${failed[*]}" >&2; exit 1; }
