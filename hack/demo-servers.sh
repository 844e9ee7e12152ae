#!/usr/bin/env bash
# Servers of the walk-through that outlive it. Its parts source this file, and set servers to a directory
# of their own, which each of the servers names in its arguments.
#
#   hack/demo-servers.sh stop   # end all servers; `make down` does
# shellcheck shell=bash disable=SC2154 # servers is the part's
root=${CROFT_SANDBOX_DIR:-${SANDBOX_DIR:-$PWD/.sandbox}}

# stop_servers ends what an earlier run has started, and nothing else: the number of a
# process that has ended may be another's by now.
stop_servers() {
  local file pid
  for file in "$servers"/*.pid; do
    [ -e "$file" ] || continue
    pid=$(<"$file")
    case $(ps -p "$pid" -o args= 2>/dev/null) in *"$servers"/*) ;; *) continue ;; esac
    kill "$pid"
    for _ in {1..50}; do
      kill -0 "$pid" 2>/dev/null || continue 2
      sleep 0.2
    done
    kill -9 "$pid"
  done
  rm -rf "$servers"
}

if [ "${1:-}" = stop ]; then
  for servers in "$root-login" "$root-cost"; do stop_servers; done
  exit
fi

# background runs a server that outlives the demo.
background() {
  local name=$1
  shift
  nohup "$@" <&0 >"$servers/$name.out" 2>"$servers/$name.log" &
  echo $! >"$servers/$name.pid"
}
# eventually waits until a command succeeds, for 90 seconds or for $patience.
eventually() {
  local what=$1 most=${patience:-90} deadline
  deadline=$((SECONDS + most))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $deadline ] || { printf '%s: not within %s s; see %s\n' "$what" "$most" "$servers" >&2; return 1; }
    sleep 1
  done
}
# find_address prints the address or the URL at which a server of croft listens.
find_address() { sed -nE 's/.*"msg":"listening".*"(addr|url)":"([^"]*)".*/\2/p' "$servers/$1.log" | grep .; }
# write_kubeconfig writes a kubeconfig with the token of a service account instead of the administrator's
# certificate.
write_kubeconfig() {
  local file=$1 namespace=$2 account=$3 admin
  kubectl config view --raw --minify --flatten >"$file"
  chmod 600 "$file"
  admin=$(kubectl --kubeconfig "$file" config view -o jsonpath='{.users[0].name}')
  kubectl --kubeconfig "$file" config delete-user "$admin" >/dev/null 2>&1
  kubectl --kubeconfig "$file" config set-credentials "$admin" \
    --token="$(kubectl create token "$account" -n "$namespace" --duration=8h)" >/dev/null
  kubectl --kubeconfig "$file" config set-context --current --namespace="$namespace" >/dev/null
}
