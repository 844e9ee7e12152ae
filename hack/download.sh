#!/usr/bin/env bash
# Downloads the modules of croft, of the sandbox and of their tests, while the first build
# compiles: `go build` compiles nothing before it has all modules, and downloads nothing
# after. Until the first modules are there, the compiler gets the standard library to do.
# What cannot be downloaded is left to the build, which says so.
set -uo pipefail
cd "$(dirname "$0")/.."
go build std &
go list -deps ./cmd/croft
(cd sandbox && go list -deps ./cmd/croft-sandbox)
go list -deps -test ./...
(cd sandbox && go list -deps -test ./internal/...)
(cd hack/tools && go list -deps gotest.tools/gotestsum)
wait
