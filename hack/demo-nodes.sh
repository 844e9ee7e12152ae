# The part of the walk-through with real nodes (NODES=real). Sourced by demo.sh.
chapter "The pods are real: logs, exec, port-forward, a rolling update, and two programs that fail"
team_a=(--as a-developer --as-group team-a -n tenant-a)
show kubectl "${team_a[@]}" logs deployment/nginx --tail=1
show kubectl "${team_a[@]}" exec deployment/nginx -- /probe id
exec 5< <(kubectl "${team_a[@]}" port-forward deployment/nginx :80)
forward=$!
printf '%s$ kubectl port-forward deployment/nginx :80%s\n' "$dim" "$off"
read -r forwarding <&5 && echo "$forwarding"
port=${forwarding#*127.0.0.1:} && port=${port%% *}
exec 6<>"/dev/tcp/127.0.0.1/$port" && printf 'GET / HTTP/1.0\r\n\r\n' >&6
printf '%s$ curl http://127.0.0.1:%s%s\n' "$dim" "$port" "$off"
tail -n 1 <&6
exec 5<&- 6>&- && kill "$forward"
show kubectl "${team_a[@]}" set image deployment/nginx nginx=nginx:alpine
show kubectl "${team_a[@]}" rollout status deployment/nginx --timeout=90s
kubectl "${team_a[@]}" apply -f - <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: hungry}
spec:
  restartPolicy: Never
  containers: [{name: hungry, image: any/image, args: [memory, "200"], resources: {limits: {memory: 64Mi}}}]
YAML
kubectl "${team_a[@]}" wait pod/hungry --for=jsonpath='{.status.phase}'=Failed --timeout=90s
show croft why pod/hungry -n tenant-a || true # a problem has exit status 1
kubectl "${team_a[@]}" apply -f - <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: deaf}
spec:
  containers: [{name: deaf, image: any/image, livenessProbe: {tcpSocket: {port: 9}, periodSeconds: 1, failureThreshold: 1}}]
YAML
kubectl "${team_a[@]}" wait pod/deaf --for=jsonpath='{.status.containerStatuses[0].restartCount}'=1 --timeout=90s
show croft why pod/deaf -n tenant-a || true
kubectl "${team_a[@]}" delete pod hungry deaf --wait=false

chapter "A pod of tenant-a reaches its own team's pods, and not tenant-b's"
own=$(kubectl -n tenant-a get pods -l app=nginx -o jsonpath='{.items[0].status.podIP}')
other=$(kubectl -n tenant-b get pods -l app=nginx -o jsonpath='{.items[0].status.podIP}')
connections=$(kubectl "${team_a[@]}" exec deployment/nginx -- /probe dial "tcp/$own:80" "tcp/$other:80")
printf '%s$ kubectl exec deployment/nginx -- /probe dial tcp/%s:80 tcp/%s:80%s\n%s\n' "$dim" "$own" "$other" "$off" "$connections"
case $connections in
  *"$own:80 open"*"$other:80 open"*) echo "tenant-b's pod should not be reachable" >&2 && exit 1 ;;
  *"$own:80 open"*) ;;
  *) echo "tenant-a's own pod should be reachable" >&2 && exit 1 ;;
esac

chapter "Karpenter drains a node, and the pods run on its successor"
node=$(kubectl -n tenant-a get pods -l app=nginx -o jsonpath='{.items[0].spec.nodeName}')
show kubectl delete node "$node" --timeout=90s
show kubectl "${team_a[@]}" rollout status deployment/nginx --timeout=90s
show kubectl -n tenant-a get pods -l app=nginx -o wide
