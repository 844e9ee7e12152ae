# The demo's part with Flux: a push to Git becomes a running pod, and attacks by push
# are refused. demo.sh sources it, with GITOPS=flux.
# shellcheck shell=bash

url=$("$sandbox" git deploy)
repository=$(mktemp -d)
declared=$(mktemp)
developer=(--as a-developer --as-group team-a)

# push commits the repository's files, and pushes them.
push() {
  git -C "$repository" add -A
  git -C "$repository" -c user.name=a-developer -c user.email=a@example.org commit -q --allow-empty -m "$1"
  git -C "$repository" push -q origin HEAD:main
  printf '%s$ git commit -m "%s"; git push%s\n' "$dim" "$1" "$off"
}
# reconciled waits until Flux has tried the last push: True if it was applied.
reconciled() {
  local want deadline=$((SECONDS + 90)) is=
  want="main@sha1:$(git -C "$repository" rev-parse HEAD) $1"
  until [ "$is" = "$want" ]; do
    [ $SECONDS -lt $deadline ] || { printf 'after 90 s, Flux is at: %s\n' "$is" >&2; return 1; }
    is=$(kubectl -n tenant-a get kustomization croft-app \
      -o jsonpath='{.status.lastAttemptedRevision} {.status.conditions[?(@.type=="Ready")].status}')
  done
}
# explained runs croft why for an object that is not applied, and prints the first cause.
explained() {
  printf '%s$ croft why %s -n tenant-a%s\n' "$dim" "$1" "$off"
  if story=$(croft why "$1" -n tenant-a "${developer[@]}" 2>&1); then
    printf 'this should have been refused:\n%s\n' "$story" >&2
    exit 1
  fi
  printf '%s\n' "$story" | awk '/^$/ {blank++} blank < 2' | sed -e '1s/^/  ✗ /' -e '2,$s/^/  /' -e '/^ *$/d'
}
# attack pushes a file that must not be applied.
attack() {
  cat >"$repository/deploy/$2"
  sed 's/^/  | /' "$repository/deploy/$2"
  push "$1"
}

chapter "Team a deploys by pushing to Git: the platform names the repository, once"
sed "s|^  tenant-a:|&\n    policy: {sourceHosts: [127.0.0.1]}\n    sources: {app: {git: \"$url\", path: ./deploy}}|" "$file" >"$declared"
diff "$file" "$declared" | sed -n 's/^>/ /p' || true # that they differ
show croft apply -f "$declared"

chapter "A push to the repository becomes a running pod"
git clone -q "$url" "$repository" 2>/dev/null # it says that it is empty
rm -rf "$repository"/{deploy,base,more}
mkdir "$repository/deploy"
kubectl create deployment web --image=nginx --dry-run=client -o yaml >"$repository/deploy/web.yaml"
pushed=$SECONDS
push "deploy web"
reconciled True
show kubectl -n tenant-a rollout status deployment/web --timeout=90s
show kubectl -n tenant-a get pods -l app=web -o wide
printf '  %s s from the push to the running pod\n' $((SECONDS - pushed))

chapter "Five attacks by push are refused, and croft explains why"
step "    An object for another tenant's namespace, which Flux creates in the team's own"
attack "for tenant-b" intruder.yaml <<'YAML'
{apiVersion: v1, kind: ConfigMap, metadata: {name: intruder, namespace: tenant-b}}
YAML
reconciled True
bounces kubectl -n tenant-b get configmap intruder
show kubectl -n tenant-a get configmap intruder

step "    A ClusterRole"
attack "more rights" intruder.yaml <<'YAML'
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: mine}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]
YAML
reconciled False
explained kustomization/croft-app

step "    A base in another repository"
rm "$repository/deploy/intruder.yaml"
mkdir "$repository/base"
echo '{apiVersion: v1, kind: ConfigMap, metadata: {name: based}}' >"$repository/base/based.yaml"
echo 'resources: [based.yaml]' >"$repository/base/kustomization.yaml"
attack "a remote base" kustomization.yaml <<YAML
resources: [web.yaml, "$url//base?ref=main"]
YAML
reconciled False
explained kustomization/croft-app

step "    A Kustomization of another tenant's source"
rm "$repository/deploy/kustomization.yaml"
attack "another tenant's source" intruder.yaml <<'YAML'
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: mine}
spec:
  serviceAccountName: croft-deployer
  sourceRef: {kind: GitRepository, name: croft-app, namespace: tenant-b}
  interval: 1m
  prune: true
YAML
reconciled False
explained kustomization/croft-app

step "    A Kustomization with the service account of Flux, which has every right"
mkdir "$repository/more"
echo '{apiVersion: v1, kind: Namespace, metadata: {name: mine}}' >"$repository/more/namespace.yaml"
attack "as the platform" intruder.yaml <<'YAML'
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: mine}
spec:
  serviceAccountName: kustomize-controller
  sourceRef: {kind: GitRepository, name: croft-app}
  path: ./more
  interval: 1m
  prune: true
YAML
kubectl -n tenant-a wait kustomization/mine --for=create --timeout=60s >/dev/null
kubectl -n tenant-a wait kustomization/mine --for=condition=Ready=false --timeout=60s >/dev/null
explained kustomization/mine
rm -rf "$repository" "$declared"
