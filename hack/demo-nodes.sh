# The part of the walk-through with real nodes (NODES=real). Sourced by demo.sh.
chapter "The pods are real: logs, exec, a rolling update, and a program that needs too much memory"
team_a=(--as a-developer --as-group team-a -n tenant-a)
show kubectl "${team_a[@]}" logs deployment/nginx --tail=1
show kubectl "${team_a[@]}" exec deployment/nginx -- /probe id
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
kubectl "${team_a[@]}" delete pod hungry --wait=false

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
