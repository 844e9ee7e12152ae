#!/usr/bin/env bash
# Checks that documents and comments in Go are in plain English, by the rules in styles/Croft.
# First it checks the rules: they refuse every line of bad.txt, and no line of good.txt.
# `make prose` calls it.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Prints FILE:LINE:COLUMN:RULE:MESSAGE for each finding.
vale() { bin/vale --no-global --no-exit --output=line "$@"; }

for language in md go; do
  mark=$([ $language = md ] || echo '// ')
  read_examples() { awk -v mark="$mark" '{print mark $0 "\n"}' "$1" | vale --ext=.$language; }
  missed=$(awk -F: 'FILENAME != "hack/vale/bad.txt" {found[$2]; next} !(2 * FNR - 1 in found)' <(read_examples hack/vale/bad.txt) hack/vale/bad.txt)
  refused=$(read_examples hack/vale/good.txt)
  if [ -n "$missed$refused" ]; then
    printf 'rules in hack/vale/styles, for %s files: missed in bad.txt: %s\nrefused in good.txt: %s\n' "$language" "$missed" "$refused" >&2
    exit 1
  fi
done

found=$(vale api cmd docs examples hack internal README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md)
if [ -n "$found" ]; then
  printf '%s\nsee "Plain English" in CONTRIBUTING.md\n' "$found" >&2
  exit 1
fi
