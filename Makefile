# croft: build, try, test. `make help` lists what there is.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

BIN         := $(CURDIR)/bin
GO          := go
# The same flags for build, vet and lint, so that they share what is compiled.
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS) -trimpath)
SANDBOX_DIR := $(CURDIR)/.sandbox
# The sandbox is linked from all of Kubernetes: minutes the first time, seconds
# afterwards.
SANDBOX_SOURCES := $(shell find sandbox api/crds \( -name '*_test.go' -o -path sandbox/addons \) -prune -o -type f -print 2>/dev/null)
CROFT_SOURCES   := $(shell find api cmd internal -name '*_test.go' -prune -o -name '*.go' -print -o -name '*.yaml' -print 2>/dev/null) go.mod go.sum

say = @printf '\033[1m==>\033[0m %s\n' "$(1)" >&2

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: $(BIN)/croft $(BIN)/croft-sandbox ## Build bin/croft and bin/croft-sandbox

$(BIN)/croft: $(CROFT_SOURCES)
	$(call say,building croft)
	@$(GO) build -ldflags "-s -w" -o $@ ./cmd/croft

$(BIN)/croft-sandbox: $(SANDBOX_SOURCES)
	$(call say,building croft-sandbox: all of Kubernetes and Karpenter (minutes the first time))
	@cd sandbox && $(GO) build -ldflags "$$(./ldflags.sh)" -o $@ ./cmd/croft-sandbox

.PHONY: gatekeeper
gatekeeper: $(BIN)/gatekeeper ## Build bin/gatekeeper, for `croft-sandbox up --with gatekeeper`

# Its manifest goes along, so that what a sandbox installs is of the same version.
$(BIN)/gatekeeper: sandbox/addons/go.mod sandbox/addons/go.sum
	$(call say,building gatekeeper (minutes the first time))
	@cd sandbox/addons && $(GO) build -ldflags "-s -w" -o $@ github.com/open-policy-agent/gatekeeper/v3
	@cd sandbox/addons && install -m 0644 "$$($(GO) list -m -f '{{.Dir}}' github.com/open-policy-agent/gatekeeper/v3)/deploy/gatekeeper.yaml" $@.yaml

.PHONY: karpenter-aws
karpenter-aws: $(BIN)/karpenter-aws ## Build bin/karpenter-aws, for `croft-sandbox up --with aws`

$(BIN)/karpenter-aws: $(SANDBOX_SOURCES)
	$(call say,building karpenter-aws (minutes the first time))
	@cd sandbox && $(GO) build -ldflags "-s -w" -o $@ ./cmd/karpenter-aws

# Gatekeeper's own way to try templates.
$(BIN)/gator: sandbox/addons/go.mod sandbox/addons/go.sum
	$(call say,building gator)
	@cd sandbox/addons && $(GO) build -ldflags "-s -w" -o $@ github.com/open-policy-agent/gatekeeper/v3/cmd/gator

.PHONY: demo
demo: build $(if $(filter gatekeeper,$(ENGINE)),gatekeeper) $(if $(filter aws,$(CLOUD)),karpenter-aws) ## Play the walk-through: two tenants, each on nodes of its own
	@SANDBOX_DIR=$(SANDBOX_DIR) ENGINE=$(ENGINE) CLOUD=$(CLOUD) hack/demo.sh

.PHONY: down
down: ## End the demo's sandbox and delete its data
	@if [ -x $(BIN)/croft-sandbox ]; then SANDBOX_DIR=$(SANDBOX_DIR) hack/down.sh; fi

.PHONY: test
test: build gatekeeper karpenter-aws $(BIN)/gator lint generated ## Everything: unit and integration tests, race detector, vet, lint, generated code
	$(call say,go vet)
	@$(GO) vet ./...
	@cd sandbox && $(GO) vet ./...
	$(call say,compiling for the race detector (minutes the first time))
	@# Beforehand, so that no test waits for a cluster while both cores compile.
	@$(GO) build -race ./...
	$(call say,tests with the race detector)
	@$(GO) test -race -timeout 40m -skip '^TestMutants' ./...
	$(call say,mutation tests: everything that the walls are made of is taken away once)
	@$(GO) test -race -timeout 20m -run '^TestMutants' -v ./internal/verify >$(BIN)/mutants.log 2>&1 || { cat $(BIN)/mutants.log; exit 1; }
	@grep '^mutation score' $(BIN)/mutants.log; echo 'each mutant and what noticed it: bin/mutants.log'
	@# The package that links the components has no tests, and all of Kubernetes
	@# below it: compiling that for the race detector would take ten minutes.
	@cd sandbox && $(GO) test -race -timeout 10m $$($(GO) list ./internal/... | grep -v /internal/run$$)

.PHONY: bench
bench: build ## Measure croft beside the alternative, as ratios
	@$(GO) run ./hack/bench

BENCHMARKS := $(CURDIR)/docs/benchmarks
.PHONY: bench-admission
bench-admission: build gatekeeper ## Measure pod creation beside Gatekeeper, into docs/benchmarks
	@$(GO) run ./hack/benchadmission -o $(BENCHMARKS) $(FLAGS)

.PHONY: lint
lint: $(BIN)/golangci-lint ## Run golangci-lint
	$(call say,golangci-lint)
	@$(BIN)/golangci-lint run ./...
	@cd sandbox && $(BIN)/golangci-lint run --config ../.golangci.yaml ./...

.PHONY: generate
generate: $(BIN)/controller-gen $(BIN)/crd-ref-docs ## Write the generated code, CRDs and API reference anew
	$(call say,generating)
	@hack/generate.sh .

.PHONY: generated
generated: $(BIN)/controller-gen $(BIN)/crd-ref-docs ## Check that what is generated is current
	$(call say,checking that generated files are current)
	@hack/generated.sh

TOOLS := controller-gen golangci-lint crd-ref-docs
$(addprefix $(BIN)/,$(TOOLS)): hack/tools/go.mod hack/tools/go.sum
	$(call say,building $(@F) (a minute or two the first time))
	@cd hack/tools && $(GO) build -o $@ "$$($(GO) list tool | grep '/$(@F)$$')"

.PHONY: clean
clean: down ## Delete what was built
	@rm -rf $(BIN)
