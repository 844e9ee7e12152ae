#!/usr/bin/env bash
# The part of the walk-through that `make demo DASHBOARD=1` adds to the one with LOGIN=1: both
# teams and a platform admin open croft dashboard. hack/demo.sh sources it after
# hack/demo-login.sh, which ends the dashboard, too.

chapter "croft dashboard: web pages with the rights of the user, and no others"
# The client's secret in provider.mjs.
(umask 077 && printf 'a secret: 100%%' >"$login/client-secret")
background dashboard bin/croft dashboard --server "https://$proxy" --certificate-authority "$login/tls.crt" \
  --listen "$dashboard" --tls-cert-file "$login/tls.crt" --tls-private-key-file "$login/tls.key" --public-url "https://$dashboard" \
  --oidc-issuer-url "$issuer" --oidc-ca-file "$login/tls.crt" --oidc-client-id dashboard \
  --oidc-client-secret-file "$login/client-secret" --oidc-prompt consent </dev/null
eventually "croft dashboard" env NODE_EXTRA_CA_CERTS="$login/tls.crt" \
  node -e "fetch('https://$dashboard/login').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"

# open_page logs a user in with a browser without a window, and prints the text of the page.
open_page() {
  step "    $1 logs in, and sees"
  if ! text=$(bin/browser --account "$2" --issuer "${issuer#https://}" --certificate-authority "$login/tls.crt" "https://$dashboard/login/start"); then
    return 1
  fi
  printf '%s\n' "$text" | grep -v '^ *$' | sed 's/^/  │ /'
}
if command -v chromium chromium-browser google-chrome >/dev/null; then
  open_page "Ann of team-a" ann
  open_page "Bob of team-b" bob
  open_page "Pat, a platform admin," pat
  open_page "Joe, who has no access to any tenant," joe
else
  echo "  There is no Chromium here: open the page yourself."
fi
printf '\n%s  The dashboard is https://%s.%s Its certificate is self-signed.\n' "$bold" "$dashboard" "$off"
printf '  Log in as ann, bob, pat or joe, with any password. make down ends it.\n'
