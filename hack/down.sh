#!/usr/bin/env bash
# Ends the demo's sandbox, and deletes it. With a simulated AWS account, it first deletes
# the pools, as before the deletion of a real cluster: Karpenter then removes their
# instances, launch templates and instance profiles. Run by `make down`.
set -euo pipefail
cd "$(dirname "$0")/.."

export CROFT_SANDBOX_DIR=${SANDBOX_DIR:-$PWD/.sandbox}
sandbox=bin/croft-sandbox

if "$sandbox" status -o json 2>/dev/null | grep -q '"component": "aws"'; then
  echo "deleting the pools, so that nothing is left in the simulated AWS account" >&2
  "$sandbox" aws clear 2>/dev/null # simulated faults
  "$sandbox" kubectl delete tenants.croft.dev --all --wait=false >/dev/null
  "$sandbox" kubectl delete pools.croft.dev --all --wait=false >/dev/null
  # croft keeps pools that tenants still use, and the walls of deleted tenants.
  "$sandbox" stop croft >/dev/null
  if ! "$sandbox" kubectl delete nodepools,ec2nodeclasses --all --timeout=120s >/dev/null || ! left=$("$sandbox" aws left); then
    printf 'still in the account:\n%s\n' "${left:-$("$sandbox" aws left || true)}" >&2
    echo "to delete the sandbox anyway: $sandbox --dir $CROFT_SANDBOX_DIR down --delete" >&2
    exit 1
  fi
  echo "nothing is left in the account" >&2
fi
hack/demo-servers.sh stop
"$sandbox" down --delete
