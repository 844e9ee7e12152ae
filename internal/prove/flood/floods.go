package flood

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// listedObjects is the number of ConfigMaps in a list of 20 MB.
	listedObjects = 80
	// floodWatches is the number of watches, and watchInterval the time between two changes that they report.
	floodWatches, watchInterval = 2000, 100 * time.Millisecond
	// floodPods is the number of pending pods, if no quota refuses them earlier, and floodLeases the number of
	// Leases, which is below the quota.
	floodPods, floodLeases = 2000, 192
	// floodScalers is the number of HorizontalPodAutoscalers, which is the quota.
	floodScalers = 50
	// largeObjects is the number of objects of the maximum size, if no quota refuses them earlier.
	largeObjects = 250
	// afterRefusal is the pause of a client whose request was refused, as of a controller.
	afterRefusal = 250 * time.Millisecond
)

// floodLabels are on all objects of floods.
var floodLabels = client.MatchingLabels{"verify.croft.dev/flood": "true"}

// Flood is load that a team can cause with the rights of an operator. Each of its clients is a member of the
// team with a connection of its own.
type Flood struct {
	Name, Summary string
	clients       int
	// prepare creates a client's part of the load that remains. It may be nil.
	prepare func(context.Context, *flooder)
	// act sends some requests, and is called again and again. It may be nil.
	act func(context.Context, *flooder) error
	// Named means that `croft doctor` can name the tenant: enough of its pods or of its service accounts' requests wait.
	Named bool
	// Stored means that the flood fills etcd, whose size is measured.
	Stored bool
}

// All are all floods. The last one uses much of etcd's space.
var All = []Flood{
	{Name: "lists", Summary: "64 clients list everything in their namespace, of which 20 MB are ConfigMaps", clients: 64, prepare: fillLists, act: listEverything},
	{Name: "accounts", Summary: "the same by 64 service accounts", clients: 64, prepare: prepareAccount, act: listAsAccount, Named: true},
	{Name: "watches", Summary: fmt.Sprintf("%d watches, which report %d changes a second", floodWatches, time.Second/watchInterval), clients: 40, prepare: openManyWatches, act: changeWatched},
	{Name: "configmaps", Summary: "16 clients create and delete ConfigMaps", clients: 16, act: churnConfigMaps},
	{Name: "pods", Summary: fmt.Sprintf("pending pods up to the quota, or %d, that no node can run", floodPods), clients: 16, prepare: createPendingPods, Named: true},
	{Name: "events", Summary: "16 clients write events", clients: 16, act: writeEvent},
	{Name: "leases", Summary: fmt.Sprintf("64 clients renew %d Leases", floodLeases), clients: 64, prepare: createLeases, act: renewLease},
	{Name: "jobs", Summary: "16 clients create Jobs, each of which fails after a second", clients: 16, act: createFailingJob},
	{Name: "owners", Summary: "16 clients create ConfigMaps whose owner does not exist", clients: 16, act: createOrphan},
	{Name: "scalers", Summary: fmt.Sprintf("%d HorizontalPodAutoscalers with ten metrics", floodScalers), clients: 10, prepare: createScalers},
	{Name: "services", Summary: "16 clients create and delete Services", clients: 16, act: churnServices},
	{Name: "sizes", Summary: fmt.Sprintf("8 clients write up to %d ConfigMaps of the maximum size again and again", largeObjects), clients: 8, prepare: fillLargest, act: rewriteLargest, Stored: true},
}

// Choose returns the floods with these names, or all if there are none.
func Choose(names []string) ([]Flood, error) {
	if len(names) == 0 {
		return All, nil
	}
	for _, name := range names {
		if !slices.Contains(ListNames(), name) {
			return nil, fmt.Errorf("there is no flood %q: choose from %s", name, strings.Join(ListNames(), ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(All), func(f Flood) bool { return !slices.Contains(names, f.Name) }), nil
}

// ListNames returns the names of all floods.
func ListNames() []string {
	var names []string
	for _, f := range All {
		names = append(names, f.Name)
	}
	return names
}

// RequestCount counts a flood's requests.
type RequestCount struct {
	Sent    int `json:"sent"`
	Refused int `json:"refused"`
	// Refusal is the first refusal.
	Refusal string `json:"refusal,omitempty"`

	mu sync.Mutex
}

func (c *RequestCount) add(err error) {
	if errors.Is(err, context.Canceled) {
		return // the flood has ended
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Sent++
	if err != nil {
		if c.Refused++; c.Refusal == "" {
			c.Refusal = err.Error()
		}
	}
}

func (c *RequestCount) String() string {
	return fmt.Sprintf("%d requests, %d of them refused", c.Sent, c.Refused)
}

// check returns an error if no request was successful: there was no flood.
func (c *RequestCount) check() error {
	if c.Sent == c.Refused {
		return fmt.Errorf("none of the flood's %d requests succeeded: %s", c.Sent, c.Refusal)
	}
	return nil
}

// flooder is a client of a flood.
type flooder struct {
	client.WithWatch
	raw *http.Client
	// account is the connection of a service account. It is nil until a flood needs it.
	account *http.Client
	cluster *Neighbours
	// number is its number among the flood's clients.
	number, clients int
	// turn is the number of its acts, and own the names of its objects.
	turn int
	own  []string
	sent *RequestCount
}

func (n *Neighbours) newFlooder(number int) (*flooder, error) {
	c, raw, err := n.newUser(fmt.Sprintf("person %d of %s", number, n.Neighbour.Namespace), n.Neighbour)
	return &flooder{WithWatch: c, raw: raw, cluster: n, number: number}, err
}

// takePart takes part in a flood until ctx ends. It calls prepared when the load that remains is in force.
func (u *flooder) takePart(ctx context.Context, f Flood, sent *RequestCount, prepared func()) {
	u.clients, u.turn, u.own, u.sent = f.clients, 0, nil, sent
	if f.prepare != nil {
		f.prepare(ctx, u)
	}
	prepared()
	for ; f.act != nil && ctx.Err() == nil; u.turn++ {
		if f.act(ctx, u) != nil {
			pause(ctx, afterRefusal)
		}
	}
	<-ctx.Done()
}

// countRequest counts a request, and returns its error.
func (u *flooder) countRequest(err error) error {
	u.sent.add(err)
	return err
}

// getPart returns this client's part of a number of objects.
func (u *flooder) getPart(total int) int { return (total + u.clients - 1 - u.number) / u.clients }

// fillPart creates this client's part of a number of objects, as far as the quota allows.
func (u *flooder) fillPart(ctx context.Context, total int, build func() client.Object) {
	for range u.getPart(total) {
		o := build()
		err := u.countRequest(u.Create(ctx, o))
		if apierrors.IsForbidden(err) || ctx.Err() != nil {
			return
		}
		if err == nil {
			u.own = append(u.own, o.GetName())
		}
	}
}

// churnObject creates an object and deletes it.
func (u *flooder) churnObject(ctx context.Context, o client.Object) error {
	if err := u.countRequest(u.Create(ctx, o)); err != nil {
		return err
	}
	return u.countRequest(u.Delete(ctx, o))
}

// patchOwn changes the next one of the client's objects. object names its kind.
func (u *flooder) patchOwn(ctx context.Context, object client.Object, format string, args ...any) error {
	if len(u.own) == 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	object.SetNamespace(u.cluster.Neighbour.Namespace)
	object.SetName(u.own[u.turn%len(u.own)])
	return u.countRequest(u.Patch(ctx, object, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, args...))))
}

// openBody sends a GET by one of the client's connections, and returns the response's body if it is successful. The caller must close it.
func (u *flooder) openBody(ctx context.Context, by *http.Client, path string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.cluster.config.Host+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := by.Do(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s: %s", path, response.Status), response.Body.Close())
	}
	return response.Body, nil
}

func (n *Neighbours) newFloodMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: n.Neighbour.Namespace, GenerateName: "flood-", Labels: maps.Clone(floodLabels)}
}

func (n *Neighbours) newFloodConfigMap(bytes int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: n.newFloodMeta(), Data: map[string]string{"text": strings.Repeat("x", bytes)}}
}

func fillLists(ctx context.Context, u *flooder) {
	u.fillPart(ctx, listedObjects, func() client.Object { return u.cluster.newFloodConfigMap(min(LargestText, u.cluster.MostBytes)) })
}

// listedResources are the kinds of a team, by path. %s is the namespace.
var listedResources = []string{
	"/api/v1/namespaces/%s/configmaps", "/api/v1/namespaces/%s/pods", "/api/v1/namespaces/%s/secrets", "/api/v1/namespaces/%s/services",
	"/api/v1/namespaces/%s/events", "/apis/apps/v1/namespaces/%s/deployments", "/apis/apps/v1/namespaces/%s/replicasets",
	"/apis/batch/v1/namespaces/%s/jobs",
}

func listEverything(ctx context.Context, u *flooder) error { return u.listNext(ctx, u.raw) }

// listNext lists the next kind. It drops the response, because decoding it would take CPU time from the API server.
func (u *flooder) listNext(ctx context.Context, by *http.Client) error {
	body, err := u.openBody(ctx, by, fmt.Sprintf(listedResources[u.turn%len(listedResources)], u.cluster.Neighbour.Namespace))
	if err == nil {
		_, err = io.Copy(io.Discard, body)
		err = errors.Join(err, body.Close())
	}
	return u.countRequest(err)
}

// prepareAccount creates a service account that may list its namespace, as its team may. The API server's priority and
// fairness gives each account a share, as it does each person.
func prepareAccount(ctx context.Context, u *flooder) {
	fillLists(ctx, u)
	account := &corev1.ServiceAccount{ObjectMeta: u.cluster.newFloodMeta()}
	if u.countRequest(u.Create(ctx, account)) != nil {
		return
	}
	err := u.countRequest(u.Create(ctx, u.cluster.newLister()))
	if err == nil || apierrors.IsAlreadyExists(err) {
		err = u.countRequest(u.Create(ctx, u.cluster.newListerBinding(account.Name)))
	}
	if err != nil {
		return
	}
	_, u.account, err = u.cluster.newClients("system:serviceaccount:"+u.cluster.Neighbour.Namespace+":"+account.Name,
		"system:serviceaccounts", "system:serviceaccounts:"+u.cluster.Neighbour.Namespace, "system:authenticated")
	_ = u.countRequest(err)
}

// listerRole is the name of the Role of the service accounts.
const listerRole = "flood-lister"

func (n *Neighbours) newLister() *rbacv1.Role {
	role := &rbacv1.Role{ObjectMeta: n.newFloodMeta(), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps", "pods", "secrets", "services", "events"}, Verbs: []string{"list"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments", "replicasets"}, Verbs: []string{"list"}},
		{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"list"}},
	}}
	role.GenerateName, role.Name = "", listerRole
	return role
}

func (n *Neighbours) newListerBinding(account string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: n.newFloodMeta(), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: listerRole},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: n.Neighbour.Namespace, Name: account}},
	}
}

func listAsAccount(ctx context.Context, u *flooder) error {
	if u.account == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	return u.listNext(ctx, u.account)
}

// watchedConfigMap is the name of the ConfigMap that changes.
const watchedConfigMap = "flood-watched"

func openManyWatches(ctx context.Context, u *flooder) {
	for range u.getPart(floodWatches) {
		body, err := u.openBody(ctx, u.raw, fmt.Sprintf("/api/v1/namespaces/%s/configmaps?watch=true", u.cluster.Neighbour.Namespace))
		if u.countRequest(err) != nil {
			continue
		}
		go func() {
			defer body.Close()
			_, _ = io.Copy(io.Discard, body) // until the flood ends
		}()
	}
	if u.number == 0 {
		o := u.cluster.newFloodConfigMap(1 << 10)
		o.GenerateName, o.Name = "", watchedConfigMap
		if u.countRequest(u.Create(ctx, o)) == nil {
			u.own = []string{watchedConfigMap}
		}
	}
}

// changeWatched changes the ConfigMap, in the client that created it.
func changeWatched(ctx context.Context, u *flooder) error {
	defer pause(ctx, watchInterval)
	return u.patchOwn(ctx, &corev1.ConfigMap{}, `{"data":{"turn":"%d"}}`, u.turn)
}

func churnConfigMaps(ctx context.Context, u *flooder) error {
	return u.churnObject(ctx, u.cluster.newFloodConfigMap(1<<10))
}

// buildUnschedulablePod returns a pod for an architecture that no node has.
func (n *Neighbours) buildUnschedulablePod() *corev1.Pod {
	pod := n.buildPod(n.Neighbour, "flood-")
	pod.Labels = maps.Clone(floodLabels)
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"s390x"}}},
		}}},
	}}
	return pod
}

func createPendingPods(ctx context.Context, u *flooder) {
	u.fillPart(ctx, floodPods, func() client.Object { return u.cluster.buildUnschedulablePod() })
}

func (n *Neighbours) newFloodEvent() *corev1.Event {
	return &corev1.Event{
		ObjectMeta: n.newFloodMeta(), InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: n.Neighbour.Namespace, Name: "flood"},
		Type: corev1.EventTypeWarning, Reason: "Flood", Message: strings.Repeat("x", 1000), Source: corev1.EventSource{Component: "flood"},
	}
}

func writeEvent(ctx context.Context, u *flooder) error {
	return u.countRequest(u.Create(ctx, u.cluster.newFloodEvent()))
}

func (n *Neighbours) newFloodLease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: n.newFloodMeta(), Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("flood"), LeaseDurationSeconds: ptr.To[int32](15),
	}}
}

func createLeases(ctx context.Context, u *flooder) {
	u.fillPart(ctx, floodLeases, func() client.Object { return u.cluster.newFloodLease() })
}

func renewLease(ctx context.Context, u *flooder) error {
	return u.patchOwn(ctx, &coordinationv1.Lease{}, `{"spec":{"renewTime":%q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
}

// buildFailingJob returns a Job that fails after a second and is then deleted.
func (n *Neighbours) buildFailingJob() *batchv1.Job {
	pod := n.buildUnschedulablePod()
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.Job{ObjectMeta: n.newFloodMeta(), Spec: batchv1.JobSpec{
		BackoffLimit: ptr.To[int32](0), ActiveDeadlineSeconds: ptr.To[int64](1), TTLSecondsAfterFinished: ptr.To[int32](0),
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(floodLabels)}, Spec: pod.Spec},
	}}
}

func createFailingJob(ctx context.Context, u *flooder) error {
	return u.countRequest(u.Create(ctx, u.cluster.buildFailingJob()))
}

// createOrphan creates a ConfigMap that the garbage collector deletes after it has looked for the owner.
func createOrphan(ctx context.Context, u *flooder) error {
	return u.countRequest(u.Create(ctx, u.cluster.newOrphan()))
}

func (n *Neighbours) newOrphan() *corev1.ConfigMap {
	o := n.newFloodConfigMap(1 << 10)
	o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "missing", UID: uuid.NewUUID()}}
	return o
}

// createScalers creates a Deployment without pods that run, and HorizontalPodAutoscalers for it. Each asks for
// ten metrics that do not exist, again and again.
func createScalers(ctx context.Context, u *flooder) {
	target := u.cluster.buildDeployment()
	if u.countRequest(u.Create(ctx, target)) != nil {
		return
	}
	u.fillPart(ctx, floodScalers, func() client.Object { return u.cluster.newScaler(target.Name) })
}

func (n *Neighbours) buildDeployment() *appsv1.Deployment {
	labels := maps.Clone(floodLabels)
	return &appsv1.Deployment{ObjectMeta: n.newFloodMeta(), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: n.buildUnschedulablePod().Spec},
	}}
}

func (n *Neighbours) newScaler(deployment string) *autoscalingv2.HorizontalPodAutoscaler {
	scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: n.newFloodMeta(), Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: deployment},
		MaxReplicas:    2,
	}}
	for i := range 10 {
		scaler.Spec.Metrics = append(scaler.Spec.Metrics, autoscalingv2.MetricSpec{
			Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{
				Metric: autoscalingv2.MetricIdentifier{Name: fmt.Sprintf("requests-%d", i)},
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: resource.NewQuantity(1, resource.DecimalSI)},
			},
		})
	}
	return scaler
}

func (n *Neighbours) newFloodService() *corev1.Service {
	return &corev1.Service{ObjectMeta: n.newFloodMeta(), Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "flood"}, Ports: []corev1.ServicePort{{Port: 80}},
	}}
}

func churnServices(ctx context.Context, u *flooder) error {
	return u.churnObject(ctx, u.cluster.newFloodService())
}

func fillLargest(ctx context.Context, u *flooder) {
	u.fillPart(ctx, largeObjects, func() client.Object { return u.cluster.newFloodConfigMap(u.cluster.MostBytes) })
}

func rewriteLargest(ctx context.Context, u *flooder) error {
	size, most := int64(u.cluster.MostBytes), u.cluster.MostWritten
	if written := u.cluster.written.Add(size); written > most {
		if written-size <= most { // the first client that reaches the limit
			u.cluster.Report("the flood of sizes ends early, after %d MiB: choose a shorter phase", most>>20)
		}
		<-ctx.Done()
		return ctx.Err()
	}
	// The API server does not store a patch without a change, so each round has another letter.
	round := u.turn / max(len(u.own), 1)
	letter := string(rune('a' + round%20))
	return u.patchOwn(ctx, &corev1.ConfigMap{}, `{"data":{"text":%q}}`, strings.Repeat(letter, u.cluster.MostBytes))
}
