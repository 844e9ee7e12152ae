#!/usr/bin/env bash
# Writes everything that is generated from the code below the given directory:
# deep copies, CRDs, the API reference, the decisions about each field, the list of the walls' rules, the catalogues of
# add-ons and causes, the commands, the conditions and reasons, the metrics, what Prometheus
# and Grafana take in, the instance types of AWS and their prices, the chart. Called by `make generate`.
set -euo pipefail
cd "$(dirname "$0")/.."
to=$1

mkdir -p "$to/api/v1alpha1" "$to/api/crds" "$to/docs/reference"
bin/controller-gen object paths=./api/... output:object:dir="$to/api/v1alpha1"
bin/controller-gen crd:generateEmbeddedObjectMeta=false paths=./api/... output:crd:dir="$to/api/crds"
# Only croft writes TenantRules. An apply must replace their lists as a whole: of a set, it keeps values of others.
sed -i 's/x-kubernetes-list-type: set/x-kubernetes-list-type: atomic/' "$to/api/crds/croft.dev_tenantrules.yaml"
bin/crd-ref-docs --source-path=api/v1alpha1 --config=hack/crd-ref-docs.yaml \
  --renderer=markdown --output-path="$to/docs/reference/api.md" >/dev/null 2>&1
go run ./hack/wallsdoc docs/reference/rules.md "$to/docs/reference/rules.md"
go run ./hack/addonsdoc docs/reference/addons.md "$to/docs/reference/addons.md"
go run ./hack/causesdoc docs/reference/troubleshooting.md "$to/docs/reference/troubleshooting.md"
go run ./hack/clidoc docs/reference/cli.md "$to/docs/reference/cli.md"
go run ./hack/fields "$to"
go run ./hack/conditionsdoc docs/reference/conditions.md "$to/docs/reference/conditions.md"
go run ./hack/metricsdoc docs/reference/metrics.md "$to/docs/reference/metrics.md"
go run ./hack/monitoring "$to/monitoring"
mkdir -p "$to/internal/declare/estate" "$to/internal/declare/secondary" "$to/internal/cost/price"
go run ./hack/instancetypes "$to/internal/declare/estate/zz_generated.instance_types.go" \
  "$to/internal/declare/secondary/zz_generated.limits.go" "$to/internal/cost/price/zz_generated.on_demand.go"
go run ./hack/chart "$to/charts/croft"
