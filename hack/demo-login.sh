#!/usr/bin/env bash
# The part of the walk-through that `make demo LOGIN=1` adds: somebody logs in at an
# identity provider, and works through croft proxy. hack/demo.sh sources it.
#
#   hack/demo-login.sh check   # is there what it needs?

# headless reports whether there is no display. Then a browser without a window logs in.
headless() { [ "$(uname)" != Darwin ] && [ -z "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; }

case ${1:-} in
  check)
    if ! command -v node >/dev/null || [ ! -d bin/openid-provider ]; then
      echo "LOGIN=1 needs Node.js (22 or later) and npm, for the identity provider" >&2 && exit 1
    fi
    if headless && ! command -v chromium chromium-browser google-chrome >/dev/null; then
      echo "LOGIN=1 needs a display, or Chromium: on Debian, apt-get install chromium" >&2 && exit 1
    fi
    exit
    ;;
esac

. hack/demo-servers.sh
login=$root-login
servers=$login
free_port() { node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close() })'; }

chapter "An identity provider, whose tokens the API server does not know, and croft proxy, which does"
stop_servers
(umask 077 && mkdir "$login")
go run ./hack/certificate "$login/tls.crt" "$login/tls.key"
ln -s "$PWD/bin/openid-provider/node_modules" "$login/node_modules"
cp internal/test/e2e/testdata/oidc/provider.mjs "$login"
# The provider ends when its standard input does: this one does not.
mkfifo "$login/stdin"
# croft dashboard's address, to which the provider sends browsers back.
dashboard=127.0.0.1:$(free_port)
DASHBOARD_URL=https://$dashboard background provider node "$login/provider.mjs" "$login/tls.crt" "$login/tls.key" <>"$login/stdin"
eventually "the identity provider" test -s "$login/provider.out"
issuer=$(<"$login/provider.out")
cat >"$login/authentication.yaml" <<YAML
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: $issuer
    audiences: [croft, dashboard]
    audienceMatchPolicy: MatchAny
    certificateAuthority: |
$(sed 's/^/      /' "$login/tls.crt")
  claimMappings:
    username: {claim: preferred_username, prefix: "oidc:"}
    groups: {claim: groups, prefix: ""}
YAML
sed -e '/certificateAuthority/,/claimMappings/{/claimMappings/!d}' -e 's/^/  /' "$login/authentication.yaml"

kubectl get serviceaccount croft-proxy -n croft-system >/dev/null 2>&1 || kubectl create serviceaccount croft-proxy -n croft-system >/dev/null
may_impersonate() { kubectl get clusterrole croft-proxy -o yaml | grep -q -- '- team-a$'; }
eventually "the rights of croft proxy" may_impersonate
write_kubeconfig "$login/proxy.kubeconfig" croft-system croft-proxy
proxy=127.0.0.1:$(free_port) health=127.0.0.1:$(free_port)
background proxy bin/croft proxy --kubeconfig "$login/proxy.kubeconfig" --authentication-config "$login/authentication.yaml" \
  --tls-cert-file "$login/tls.crt" --tls-private-key-file "$login/tls.key" --addr "$proxy" --health-addr "$health" \
  --impersonation-role croft-proxy --drain 1s </dev/null
eventually "croft proxy" node -e "fetch('http://$health/readyz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"
printf '  the identity provider is %s\n  croft proxy is https://%s\n' "$issuer" "$proxy"

chapter "Ann of team-a has a kubeconfig without a secret, and logs in"
# From here on it is Ann who types.
export XDG_CACHE_HOME=$login/cache
croft() { KUBECONFIG=$login/ann.kubeconfig bin/croft "$@"; }
kubectl() { "$sandbox" kubectl --kubeconfig "$login/ann.kubeconfig" "$@"; }
show croft kubeconfig --tenant tenant-a -n tenant-a --server "https://$proxy" --certificate-authority "$login/tls.crt" \
  --issuer "$issuer" --issuer-certificate-authority "$login/tls.crt" --token-storage file --prompt consent --write
if headless; then
  echo "  There is no display: Chromium logs in without a window."
  mkdir "$login/bin"
  printf '#!/bin/sh\nexec "%s" --account ann --certificate-authority "%s" "$1" >"%s" 2>&1\n' \
    "$PWD/bin/browser" "$login/tls.crt" "$login/browser.log" >"$login/bin/xdg-open"
  chmod +x "$login/bin/xdg-open"
  export PATH=$login/bin:$PATH DISPLAY=:0
else
  printf '%s  Your browser opens. Accept the self-signed certificate, and log in as ann, with any password.%s\n' "$bold" "$off"
fi
show croft login

step "    She sees her own namespaces and nodes, and works there"
show kubectl auth whoami
show kubectl get namespaces
show kubectl get pods -A
show kubectl get nodes
show kubectl create configmap by-ann --from-literal=key=value --dry-run=server

step "    All other requests are refused"
bounces kubectl -n tenant-b get pods
bounces kubectl get persistentvolumes
bounces kubectl delete namespace tenant-a
bounces kubectl get pods --as admin --as-group system:masters
