# croft: build, try, test. `make help` lists the targets.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# A recipe that builds several programs, such as runc and containerd, is repeated if one of them fails.
.DELETE_ON_ERROR:

BIN         := $(CURDIR)/bin
GO          := go
# The compiler collects garbage less often, which saves a tenth of a cold build. GOGC is not
# exported, so it does not affect the built programs.
COMPILE     := GOGC=400 $(GO)
# Generated clients, whose methods wait for an answer from the network. Without inlining in them,
# the compiler needs three fifths of the time for EC2's, and four fifths for the others.
CLIENTS     := github.com/aws/aws-sdk-go-v2/service k8s.io/client-go/applyconfigurations k8s.io/client-go/informers k8s.io/client-go/kubernetes
# The same flags for build, test and lint, so that they share the build cache. Debugger symbols,
# which no binary here keeps, are another tenth of a cold build.
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS) -trimpath -gcflags=all=-dwarf=false $(CLIENTS:%='-gcflags=%/...=-dwarf=false -l'))
SANDBOX_DIR := $(CURDIR)/.sandbox
# golangci-lint caches findings by path: with one cache for all clones, findings fixed
# in one clone would show up again in another.
export GOLANGCI_LINT_CACHE := $(BIN)/golangci-lint-cache
# The sandbox links all of Kubernetes: minutes the first time, seconds afterwards.
SANDBOX_SOURCES := $(shell find sandbox api/crds \( -name '*_test.go' -o -path sandbox/addons -o -path sandbox/calico -o -path sandbox/cni -o -path sandbox/cyclonus -o -path sandbox/flux -o -path sandbox/node -o -path sandbox/enforcer -o -path sandbox/dns \) -prune -o -type f -print 2>/dev/null)
CROFT_SOURCES   := $(shell find api cmd internal \( -name '*_test.go' -o -name testdata \) -prune -o -type f -print 2>/dev/null) go.mod go.sum

say = @printf '\033[1m==>\033[0m %s\n' "$(1)" >&2

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: $(BIN)/croft $(BIN)/croft-sandbox ## Build bin/croft and bin/croft-sandbox

# The first build takes minutes, a third of which it would wait for downloads.
$(BIN)/croft: $(CROFT_SOURCES)
	$(call say,building croft)
	@[ -e $(BIN)/croft-sandbox ] || GOGC=400 hack/download.sh >/dev/null 2>&1 &
	@$(COMPILE) build -ldflags "-s -w" -o $@ ./cmd/croft

$(BIN)/croft-sandbox: $(SANDBOX_SOURCES)
	$(call say,building croft-sandbox: all of Kubernetes and Karpenter (minutes the first time))
	@cd sandbox && $(COMPILE) build -ldflags "$$(./ldflags.sh)" -o $@ ./cmd/croft-sandbox

.PHONY: gatekeeper
gatekeeper: $(BIN)/gatekeeper ## Build bin/gatekeeper, for `croft-sandbox up --with gatekeeper`

# Its manifest is copied, so that sandboxes install the same version.
$(BIN)/gatekeeper: sandbox/addons/go.mod sandbox/addons/go.sum
	$(call say,building gatekeeper (minutes the first time))
	@cd sandbox/addons && $(COMPILE) build -ldflags "-s -w" -o $@ github.com/open-policy-agent/gatekeeper/v3
	@cd sandbox/addons && install -m 0644 "$$($(GO) list -m -f '{{.Dir}}' github.com/open-policy-agent/gatekeeper/v3)/deploy/gatekeeper.yaml" $@.yaml

.PHONY: flux
flux: $(BIN)/kustomize-controller ## Build bin/kustomize-controller, for `croft-sandbox up --with flux`

# Its CRDs and those of sources are copied, as pinned in sandbox/addons.
$(BIN)/kustomize-controller: sandbox/flux/go.mod sandbox/flux/go.sum sandbox/addons/go.mod
	$(call say,building kustomize-controller (minutes the first time))
	@cd sandbox/flux && $(COMPILE) build -ldflags "-s -w" -o $@ github.com/fluxcd/kustomize-controller
	@cd sandbox/addons && for module in source-controller kustomize-controller; do \
	  dir=$$($(GO) mod download -json github.com/fluxcd/$$module@$$($(GO) list -m -f '{{.Version}}' github.com/fluxcd/$$module) | sed -n 's/.*"Dir": "\(.*\)".*/\1/p'); \
	  for file in $$dir/config/crd/bases/*.yaml; do echo ---; cat $$file; done; done > $@.yaml

.PHONY: karpenter-aws
karpenter-aws: $(BIN)/karpenter-aws ## Build bin/karpenter-aws, for `croft-sandbox up --with aws`

$(BIN)/karpenter-aws: $(SANDBOX_SOURCES)
	$(call say,building karpenter-aws (minutes the first time))
	@cd sandbox && $(COMPILE) build -ldflags "-s -w" -o $@ ./cmd/karpenter-aws

.PHONY: cni
cni: $(BIN)/cni/multus ## Build Multus, whereabouts and CNI plugins, for tests of secondary networks

# Their manifests are copied, so that tests install the same versions.
$(BIN)/cni/multus: sandbox/cni/go.mod sandbox/cni/go.sum
	$(call say,building multus and whereabouts (minutes the first time))
	@mkdir -p $(@D) && cd sandbox/cni && for tool in $$($(GO) list tool); do \
	  $(COMPILE) build -ldflags "-s -w" -o $(@D)/$$(case $$tool in */whereabouts/cmd) echo whereabouts ;; *) basename $$tool ;; esac) $$tool; done
	@cd sandbox/cni && install -m 0644 "$$($(GO) list -m -f '{{.Dir}}' gopkg.in/k8snetworkplumbingwg/multus-cni.v4)/deployments/multus-daemonset.yml" $(@D)/multus.yaml
	@cd sandbox/cni && install -m 0644 "$$($(GO) list -m -f '{{.Dir}}' github.com/k8snetworkplumbingwg/whereabouts)/doc/crds/daemonset-install.yaml" $(@D)/whereabouts.yaml

.PHONY: nodes
nodes: $(BIN)/sandbox-nodes $(BIN)/node/containerd $(BIN)/node/enforcer $(BIN)/node/coredns $(BIN)/node/probe ## Build the programs of `croft-sandbox up --nodes real`: kubelet, containerd, runc, CNI and network plugins, CoreDNS

$(BIN)/sandbox-nodes: $(SANDBOX_SOURCES)
	$(call say,building sandbox-nodes: kubelet and kube-proxy (minutes the first time))
	@cd sandbox && $(COMPILE) build -ldflags "$$(./ldflags.sh)" -o $@ ./cmd/sandbox-nodes

$(BIN)/node/probe: sandbox/cmd/probe/main.go
	@cd sandbox && CGO_ENABLED=0 $(COMPILE) build -ldflags "-s -w" -o $@ ./cmd/probe

$(BIN)/node/enforcer: sandbox/enforcer/main.go sandbox/enforcer/go.mod sandbox/enforcer/go.sum
	$(call say,building a network plugin (a minute or two the first time))
	@cd sandbox/enforcer && CGO_ENABLED=0 $(COMPILE) build -ldflags "-s -w" -o $@ .

$(BIN)/node/coredns: sandbox/dns/main.go sandbox/dns/go.mod sandbox/dns/go.sum
	$(call say,building CoreDNS (a minute or two the first time))
	@cd sandbox/dns && CGO_ENABLED=0 $(COMPILE) build -ldflags "-s -w" -o $@ .

# runc has code in C, which runs before Go's runtime starts threads, and links libseccomp:
# Debian's packages are gcc, pkg-config and libseccomp-dev.
$(BIN)/node/containerd: sandbox/node/go.mod sandbox/node/go.sum
	$(call say,building containerd and runc (minutes the first time))
	@cd sandbox/node && for tool in $$($(GO) list tool); do \
	  cgo=0 tags="no_btrfs no_devmapper no_zfs"; [ $$(basename $$tool) != runc ] || cgo=1 tags=seccomp; \
	  CGO_ENABLED=$$cgo $(COMPILE) build -tags "$$tags" -ldflags "-s -w" -o $(@D)/$$(basename $$tool) $$tool; done

# Gatekeeper's own tool to test templates.
$(BIN)/gator: sandbox/addons/go.mod sandbox/addons/go.sum
	$(call say,building gator)
	@cd sandbox/addons && $(COMPILE) build -ldflags "-s -w" -o $@ github.com/open-policy-agent/gatekeeper/v3/cmd/gator

# Calico's own evaluation of its selectors.
$(BIN)/calico-selector: sandbox/calico/main.go sandbox/calico/go.mod sandbox/calico/go.sum
	$(call say,building calico-selector (a minute the first time))
	@cd sandbox/calico && $(COMPILE) build -ldflags "-s -w" -o $@ .

# Cyclonus' own judgement of NetworkPolicies.
$(BIN)/cyclonus: sandbox/cyclonus/main.go sandbox/cyclonus/go.mod sandbox/cyclonus/go.sum
	$(call say,building cyclonus (a minute the first time))
	@cd sandbox/cyclonus && $(COMPILE) build -ldflags "-s -w" -o $@ .

.PHONY: openid-provider
openid-provider: $(BIN)/openid-provider ## Install bin/openid-provider, which tests log in at; needs npm

# Without npm nothing is installed, and the tests that need it are skipped and say so.
OPENID := internal/test/e2e/testdata/oidc
$(BIN)/openid-provider: $(OPENID)/package.json $(OPENID)/package-lock.json
	$(call say,installing an OpenID provider for tests$(if $(shell command -v npm),,: not without npm))
	@if command -v npm >/dev/null; then rm -rf $@.new; mkdir -p $@.new; install -m 0644 $^ $@.new; \
	  npm ci --prefix $@.new --ignore-scripts --no-audit --no-fund --loglevel=error >&2; rm -rf $@; mv $@.new $@; touch $@; fi

.PHONY: browser
browser: $(BIN)/browser ## Build bin/browser, which tests and the demo log in with; needs Chromium to run

# A module of its own: nothing else needs the library that drives browsers.
$(BIN)/browser: $(wildcard hack/browser/*)
	$(call say,building a user with a browser)
	@cd hack/browser && $(COMPILE) build -ldflags "-s -w" -o $@ .

.PHONY: helm
helm: $(BIN)/helm ## Build bin/helm, which tests install a chart with

$(BIN)/helm: hack/helm/go.mod hack/helm/go.sum
	$(call say,building helm (minutes the first time))
	@cd hack/helm && $(COMPILE) build -ldflags "-s -w" -o $@ helm.sh/helm/v4/cmd/helm

.PHONY: promtool
promtool: $(BIN)/promtool ## Build bin/promtool, which tests evaluate alerts with

# Without the discovery of thirty clouds, which takes most of the time and evaluates no rule.
$(BIN)/promtool: hack/promtool/go.mod hack/promtool/go.sum
	$(call say,building promtool (minutes the first time))
	@cd hack/promtool && $(COMPILE) build -tags remove_all_sd -ldflags "-s -w" -o $@ github.com/prometheus/prometheus/cmd/promtool

.PHONY: etcd
etcd: $(BIN)/etcdutl ## Build bin/etcdctl and bin/etcdutl, which a test backs etcd up with, and restores it

$(BIN)/etcdutl: hack/etcd/go.mod hack/etcd/go.sum
	$(call say,building etcdctl and etcdutl (a minute or two the first time))
	@cd hack/etcd && $(COMPILE) build -ldflags "-s -w" -o $(BIN)/etcdctl go.etcd.io/etcd/etcdctl/v3
	@cd hack/etcd && $(COMPILE) build -ldflags "-s -w" -o $@ go.etcd.io/etcd/etcdutl/v3

# API servers of other versions, each in a module of its own with the staging modules of its
# version.
OTHER_VERSIONS := 1.34 1.35 1.37
OTHER_SERVERS  := $(addprefix $(BIN)/kube-apiserver-,$(OTHER_VERSIONS))
$(OTHER_SERVERS): $(BIN)/kube-apiserver-%: hack/apiserver/%/go.mod hack/apiserver/%/go.sum
	$(call say,building the API server of Kubernetes $* (ten minutes the first time))
	@cd hack/apiserver/$* && version=$$($(GO) list -m -f '{{.Version}}' k8s.io/kubernetes) && package=k8s.io/component-base/version && \
	  CGO_ENABLED=0 $(COMPILE) build -ldflags "-s -w -X $$package.gitVersion=$$version -X $$package.gitMajor=1 -X $$package.gitMinor=$(subst 1.,,$*)" \
	  -o $@ k8s.io/kubernetes/cmd/kube-apiserver

.PHONY: test-versions
test-versions: build gatekeeper $(OTHER_SERVERS) ## Try croft on API servers of Kubernetes 1.34 to 1.37, and write docs/reference/versions.md; half an hour the first time
	@$(GO) run ./hack/versions -bin $(BIN)

.PHONY: krew
krew: $(BIN)/krew ## Build bin/krew, kubectl's manager of plugins, which a test installs a release with

$(BIN)/krew: hack/krew/go.mod hack/krew/go.sum
	$(call say,building krew (a minute or two the first time))
	@cd hack/krew && $(COMPILE) build -ldflags "-s -w" -o $@ sigs.k8s.io/krew/cmd/krew

# What the image is named in the archive, and which version it says it is.
IMAGE   ?= croft:$(or $(VERSION),devel)
VERSION ?=
IMAGE_ARCHITECTURES ?= amd64 arm64

.PHONY: image
image: $(BIN)/croft-image.tar ## Build bin/croft-image.tar, croft's container image, and its SBOM beside it

# The same sources make the same image, to the bit: nothing of the machine, the clock or the
# commit goes into it. TestImage builds it twice.
$(BIN)/croft-image.tar: $(CROFT_SOURCES) $(wildcard hack/image/*)
	$(call say,building the image for $(IMAGE_ARCHITECTURES))
	@for arch in $(IMAGE_ARCHITECTURES); do CGO_ENABLED=0 GOOS=linux GOARCH=$$arch $(COMPILE) build -buildvcs=false \
	  -ldflags "-s -w -X croft.dev/croft/internal/declare/version.Version=$(VERSION)" -o $(BIN)/image/croft-$$arch ./cmd/croft; done
	@cd hack/image && $(GO) run . -o $@ -zoneinfo "$$($(GO) env GOROOT)/lib/time/zoneinfo.zip" -name $(IMAGE) -version $(or $(VERSION),devel) \
	  $(foreach arch,$(IMAGE_ARCHITECTURES),$(arch)=$(BIN)/image/croft-$(arch))

# What `make release` takes. The commit is a snapshot's version: it is no release's.
DIST       ?= $(CURDIR)/dist
REPOSITORY ?= OWNER/croft
PLATFORMS  ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

.PHONY: release
release: $(BIN)/croft $(BIN)/helm ## Write all that a release publishes into dist/: VERSION=v0.2.0, or SNAPSHOT=1; no network needed
	@VERSION="$(if $(filter 1,$(SNAPSHOT)),v0.0.0-snapshot-$$(git rev-parse --short=12 HEAD),$(VERSION))" \
	  REPOSITORY="$(REPOSITORY)" PLATFORMS="$(PLATFORMS)" DIST="$(abspath $(DIST))" hack/release.sh

.PHONY: demo
demo: build $(if $(filter gatekeeper,$(ENGINE)),gatekeeper) $(if $(filter real,$(NODES)),nodes) $(if $(filter aws,$(CLOUD)),karpenter-aws) $(if $(filter flux,$(GITOPS)),flux) $(if $(filter 1,$(LOGIN) $(DASHBOARD)),browser openid-provider) ## Play the walk-through: two tenants, each on nodes of its own; with GITOPS=flux also a push, with LOGIN=1 a login, with DASHBOARD=1 the dashboard, with COST=1 a month of costs and a budget, with HA=1 leaders that die, with CLOUD=aws NETWORKS=1 more interfaces, with NODES=real containers
	@SANDBOX_DIR=$(SANDBOX_DIR) ENGINE=$(ENGINE) CLOUD=$(CLOUD) GITOPS=$(GITOPS) LOGIN=$(LOGIN) DASHBOARD=$(DASHBOARD) COST=$(COST) HA=$(HA) NETWORKS=$(NETWORKS) NODES=$(NODES) hack/demo.sh

.PHONY: down
down: ## End the demo's sandbox and delete its data
	@if [ -x $(BIN)/croft-sandbox ]; then SANDBOX_DIR=$(SANDBOX_DIR) hack/down.sh; fi

# Packages whose tests run several goroutines on the same data. In others the race detector would
# find little, and it makes tests five times as slow: `make test-all` also covers the packages that read
# a cluster or serve requests concurrently. The tests of controllers run the whole operator, and so they
# race the one Applier that controllers share; the tests of apply give each goroutine its own, and take
# fourteen minutes with the race detector. operatortest has no tests: it is listed so that the
# operator is compiled before a test waits for a cluster.
RACED     := ./internal/operate/controller/... ./internal/operate/operator/operatortest ./internal/access/proxy
RACED_ALL := $(RACED) ./internal/operate/operator ./internal/cli ./internal/test/sandbox ./internal/diagnose/... \
             ./internal/dashboard/... ./internal/network/agent ./internal/prove/dial ./internal/prove/flood ./internal/prove/trial \
             ./internal/rules/evaluator ./internal/cost/collect ./internal/cost/service ./internal/access/...

.PHONY: test
test: build $(BIN)/gotestsum $(BIN)/openid-provider ## Unit tests, and tests of every rule and command on real API servers
	@hack/test.sh

# The race detector compiles all of Kubernetes' client and API server once more. That takes
# minutes, which a first test of croft does not need.
.PHONY: race
race: build $(BIN)/gotestsum $(BIN)/openid-provider ## Run the tests in which several things happen at once with the race detector
	@hack/test.sh -only-race $(RACED)

.PHONY: mutants
mutants: build ## Remove each part of the walls once: some attack must detect each removal
	@hack/test.sh -only-mutants

.PHONY: e2e
e2e: build $(BIN)/gotestsum $(BIN)/openid-provider ## Run the end-to-end tests, a control plane for each, and the tests of tools: the sandbox, and hack
	@hack/test.sh -only-e2e $(RACED)

.PHONY: verify
verify: lint generated prose ## Check what is not tested: lint, that generated files are current, plain English

.PHONY: test-all
test-all: build gatekeeper flux karpenter-aws cni nodes browser helm krew image promtool etcd $(BIN)/gator $(BIN)/calico-selector $(BIN)/cyclonus $(BIN)/gotestsum $(BIN)/openid-provider lint-all generated ## All tests: those of `make test`, `make mutants`, `make race` and `make e2e`, lint, and AWS, Gatekeeper, the dialects of network policies, growth
	@CROFT_TEST_ALL=1 hack/test.sh $(RACED_ALL)

.PHONY: model
model: build ## Run random actions and faults against the operator, and check invariants at every revision: some fifteen minutes
	@CROFT_TEST_MODEL=1 $(GO) test -count 1 -vet=off -v -timeout 60m ./internal/test/model

.PHONY: bench
bench: build ## Measure croft beside the alternative, as ratios
	@$(GO) run ./hack/bench

.PHONY: bench-proxy
bench-proxy: build ## Measure croft proxy beside the API server and a bare reverse proxy
	@$(GO) run ./hack/bench -only proxy

.PHONY: bench-dashboard
bench-dashboard: build browser ## Measure croft dashboard with 5,000 tenants, also in Chromium; FLAGS="-headlamp DIRECTORY" compares it with Headlamp
	@$(GO) run ./hack/bench -only dashboard -tenants 5000 $(FLAGS)

.PHONY: bench-cost
bench-cost: build ## Measure croft ledger with 5,000 tenants beside its targets: bytes, memory, queries; many minutes, for 13 months of records
	@$(GO) run ./hack/bench -only cost -tenants 5000 $(FLAGS)

.PHONY: bench-objects
bench-objects: build ## Measure declared objects and copied Secrets of 1,000 tenants beside a bare client and their targets; some ten minutes
	@$(GO) run ./hack/bench -only objects -tenants 1000 $(FLAGS)

.PHONY: bench-neighbours
bench-neighbours: build ## Measure the work of a tenant during floods by another, with and without croft; a quarter of an hour, or FLAGS="-floods lists -phase 3s"
	@$(GO) run ./hack/bench -only neighbours $(FLAGS)

.PHONY: bench-karpenter
bench-karpenter: build ## Measure Karpenter's scheduling with 20, 100 and 500 pools beside one pool; minutes, or FLAGS="-pools 20"
	@$(GO) run ./hack/bench -only karpenter -pools 500 $(FLAGS)

.PHONY: bench-scale
bench-scale: build ## Measure the operator and all commands with 5,000 tenants, beside their targets and a bare client; an hour or more, or FLAGS="-tenants 200 -pools 3"
	@$(GO) run ./hack/bench -only scale -tenants 5000 $(FLAGS)

BENCHMARKS := $(CURDIR)/docs/reference/benchmarks
.PHONY: bench-admission
bench-admission: build gatekeeper ## Measure pod creation beside Gatekeeper, into docs/reference/benchmarks
	@$(GO) run ./hack/benchadmission -o $(BENCHMARKS) $(FLAGS)

# A test binary, since simulated time is a matter of testing/synctest.
.PHONY: bench-nodes
bench-nodes: ## Measure nodes with two more interfaces, by croft and by a script in user data, in simulated time
	$(call say,building the measurement (minutes the first time))
	@cd sandbox && $(COMPILE) test -c -vet=off -ldflags "-s -w" -o $(BIN)/bench-nodes ./internal/benchnodes
	@$(BIN)/bench-nodes -test.run '^TestBench$$' -o table $(FLAGS)

# Linters that analyse dependencies would analyse all of Kubernetes in the sandbox, for eight
# minutes of a core. These do not.
QUICK_LINTERS := copyloopvar,errcheck,errorlint,exhaustive,gocritic,gocyclo,ineffassign,misspell,nolintlint,revive,unconvert,unused,usestdlibvars

.PHONY: lint
lint: $(BIN)/golangci-lint ## Run golangci-lint
	$(call say,golangci-lint)
	@$(BIN)/golangci-lint run ./...
	@cd sandbox && $(BIN)/golangci-lint run --config ../.golangci.yaml --enable-only $(QUICK_LINTERS) ./...

.PHONY: lint-all
lint-all: lint ## Run all linters on the sandbox, too
	$(call say,golangci-lint on all below the sandbox (minutes the first time))
	@cd sandbox && $(BIN)/golangci-lint run --config ../.golangci.yaml ./...
	@for module in browser image; do (cd hack/$$module && $(BIN)/golangci-lint run --config ../../.golangci.yaml ./...); done

.PHONY: generate
generate: $(BIN)/controller-gen $(BIN)/crd-ref-docs ## Write the generated code, CRDs and API reference
	$(call say,generating)
	@hack/generate.sh .

.PHONY: generated
generated: $(BIN)/controller-gen $(BIN)/crd-ref-docs ## Check that what is generated is current
	$(call say,checking that generated files are current)
	@hack/generated.sh

.PHONY: prose
prose: $(BIN)/vale ## Check that comments and documents are in plain English
	$(call say,checking for plain English)
	@hack/vale/check.sh

# Vale's parsers are in C. -w suppresses warnings about them.
$(BIN)/vale: hack/vale/go.mod hack/vale/go.sum
	$(call say,building vale (a minute or two the first time))
	@cd hack/vale && CGO_CFLAGS="-O2 -w" $(COMPILE) build -ldflags "-s -w" -o $@ github.com/vale-cli/vale/v3/cmd/vale

# The path is read from go.mod: `go list tool` would download the modules of all tools.
TOOLS := controller-gen golangci-lint crd-ref-docs gotestsum
$(addprefix $(BIN)/,$(TOOLS)): hack/tools/go.mod hack/tools/go.sum
	$(call say,building $(@F) (a minute or two the first time))
	@cd hack/tools && $(COMPILE) build -o $@ "$$(awk '$$1 ~ "/$(@F)$$" {print $$1; exit}' go.mod)"

.PHONY: goflags
goflags: ## Print the GOFLAGS of everything here, for a shell in which go test is called by hand
	@echo "GOFLAGS=$(GOFLAGS)"

.PHONY: clean
clean: down ## Delete what was built
	@rm -rf $(BIN)
