#!/usr/bin/env bash
# Runs the tests, those of the named packages with the race detector, and prints at the end
# how long each step and the slowest tests took. `make test` names none; `make race` runs no
# others (-only-race); `make e2e` runs the end-to-end tests of all but them (-only-e2e), those
# that call sandbox.EndToEnd, and the tests of tools: the sandbox, and hack; `make mutants` runs
# the mutation tests (-only-mutants); `make test-all` runs all, with CROFT_TEST_ALL=1.
set -euo pipefail
cd "$(dirname "$0")/.."

only=''
case ${1:-} in -only-race | -only-e2e | -only-mutants) only=$1 && shift ;; esac
raced=("$@")
logs=bin/tests
rm -rf "$logs" && mkdir -p "$logs"
# Without debugger symbols, linking 60 binaries takes two thirds of the time.
link=(-vet=off -ldflags '-s -w')
bold='' off=''
if [ -t 1 ]; then bold=$'\e[1m' off=$'\e[0m'; fi
times=() failed=0
# step runs a command under a name, and notes how long it took. After a failure the other steps
# still run, so that one run shows all failures; the script then ends with 1.
step() {
  local name=$1 started=$SECONDS outcome=''
  shift
  printf '%s==>%s %s\n' "$bold" "$off" "$name" >&2
  "$@" || { failed=1 outcome='  FAILED'; }
  times+=("$(printf '%5d s  %s%s' $((SECONDS - started)) "$name" "$outcome")")
}
# tests runs go test in the current directory, and records each test's duration in a file.
# -vet=off: the linter vets the code (`make verify`); that of the sandbox, `make lint-all`.
tests() {
  local log=$PWD/$logs/$1.json
  shift
  (cd "${in:-.}" && "$OLDPWD/bin/gotestsum" --format pkgname --format-hide-empty-pkg --jsonfile "$log" -- "${link[@]}" "$@")
}
# finish prints the times, and ends the script: with 1 if a step failed.
finish() {
  printf '\n%sThe slowest tests%s\n' "$bold" "$off"
  cat "$logs"/*.json | bin/gotestsum tool slowest --num 20 --threshold 1s
  printf '\n%sThe steps%s\n' "$bold" "$off"
  printf '%s\n' "${times[@]}"
  exit $failed
}

# Tests are short-lived, and garbage collection is a quarter of their work: fewer, larger
# collections, as in the sandbox's components. The limit bounds each process' memory.
export GOGC=${GOGC:-400} GOMEMLIMIT=${GOMEMLIMIT:-2GiB}

# mutants runs with both cores to itself. With TestWallsHold, the mutants include the tests without
# a cluster, which are for quick runs after a change of a rule.
mutants() {
  go test -timeout 40m "${link[@]}" -run '^TestMutants' -v ./internal/prove/verify >bin/mutants.log 2>&1 || { cat bin/mutants.log; return 1; }
  grep '^mutation score' bin/mutants.log
  echo 'each mutant and the tests that detected it: bin/mutants.log'
}
no_mutants='^(TestMutants|TestRulesWithoutCluster$|TestWallsHoldWithoutCluster$)'
# The package that links the components has no tests, and all of Kubernetes below it:
# compiling that for the race detector would take ten minutes; the others take four.
test_sandbox() {
  mapfile -t packages < <(cd sandbox && go list ./internal/... | grep -v '/internal/run$')
  in=sandbox tests sandbox ${CROFT_TEST_ALL:+-race} -timeout 60m "${packages[@]}"
}

# packages lists those that patterns match, one in each line; for no patterns, none.
packages() { if (($#)); then go list "$@"; fi; }
if [ "$only" = -only-mutants ]; then
  mutants
  exit
fi
if [ -n "$only" ]; then export CROFT_TEST_E2E=1; fi
if [ "$only" = -only-e2e ]; then
  found=$(go run ./hack/e2e)
  names=$(cut -d ' ' -f 2 <<<"$found" | paste -sd '|')
  # The package with the longest tests begins first, so that it is not left for one core at the end.
  mapfile -t rest < <({ packages ./internal/test/e2e; cut -d ' ' -f 1 <<<"$found" | sort -u | xargs go list; } |
    awk '!seen[$0]++' | grep -vxF -f <(packages "${raced[@]}"))
  step 'end-to-end tests' tests e2e -timeout 60m -run "^($names)\$" "${rest[@]}"
  step 'tests of the sandbox' test_sandbox
  step 'tests of hack' tests hack ./hack/...
  finish
fi
if ((${#raced[@]})); then
  # Beforehand, so that no test waits for a cluster while all cores compile.
  step 'compiling for the race detector (minutes the first time)' go build -race "${raced[@]}"
  step 'tests with the race detector' tests race -race -timeout 60m "${raced[@]}"
fi
if [ "$only" = -only-race ]; then finish; fi
# The packages with the longest tests begin first, so that none is left for one core at the end.
# One package more than there are cores runs at once: while one waits for a control plane, the
# others have its core.
mapfile -t rest < <({ packages ./internal/prove/verify ./internal/cli ./internal/walls/wall/... ./internal/operate/...; packages ./...; } |
  awk '!seen[$0]++' | grep -vxF -f <(packages ./hack/... "${raced[@]}"))
step 'tests' tests rest -p $(($(getconf _NPROCESSORS_ONLN) + 1)) -timeout 120m -skip "$no_mutants" "${rest[@]}"
if [ -n "${CROFT_TEST_ALL:-}" ]; then
  step 'mutation tests: each part of the walls is removed once' mutants
  step 'tests of the sandbox' test_sandbox
  step 'tests of hack' tests hack ./hack/...
fi
finish
