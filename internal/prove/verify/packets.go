package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
)

// Packets tests whether the cluster's network plugin enforces the walls: pods of two scratch
// tenants connect to each other, to metadata addresses, to nodes and to the API server. The
// attacks on the network wall evaluate the policies; only packets show that a plugin enforces
// them.
type Packets struct {
	scratch *Scratch
	image   string
}

// NewPackets creates two tenants with two namespaces each, on a pool of the cluster. The first
// may connect to addresses outside of the cluster, the second may not. image is croft's image,
// or another one that runs package dial.
func NewPackets(platform v1alpha1.Platform, pool, image string) (*Packets, error) {
	tenant := func(egress v1alpha1.Egress) func(*v1alpha1.TenantSpec, string) {
		return func(t *v1alpha1.TenantSpec, _ string) {
			allowPods(t, pool)
			t.Network.Egress = egress
		}
	}
	scratch, err := newScratch(platform, tenant(v1alpha1.EgressOpen), tenant(v1alpha1.EgressRestricted))
	return &Packets{scratch: scratch, image: image}, err
}

// allowPods lets a tenant run croft's image on a pool.
func allowPods(t *v1alpha1.TenantSpec, pool string) {
	t.Pools = []string{pool}
	t.Policy = v1alpha1.TenantPolicy{PodSecurity: v1alpha1.PodSecurityRestricted, Allowances: v1alpha1.Allowances{
		PolicySettings: v1alpha1.PolicySettings{Registries: []string{"*"}, RuntimeClasses: []string{"*"}},
		// The Platform's default class may be among the classes of its tenants only.
		Images: &v1alpha1.Images{}, PriorityClass: &v1alpha1.PodPriorityClass{},
	}}
}

// polling is the interval between two reads of a pod.
const polling = 500 * time.Millisecond

// Run builds the tenants, starts their pods, passes progress to report, and deletes everything
// again, even if the context ends early. Pods may have to wait for a new node.
func (p *Packets) Run(ctx context.Context, c client.Client, report func(progress string)) (results []Result, err error) {
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), removal)
		defer cancel()
		err = errors.Join(err, p.scratch.Remove(ending, c))
	}()
	if _, err := apply.New(c).Apply(ctx, p.scratch.markObjects(ctx)...); err != nil {
		return nil, fmt.Errorf("creating the scratch tenants: %w", err)
	}
	report("starting pods in four namespaces")
	var servers []*corev1.Pod
	for _, namespace := range p.listNamespaces() {
		server := p.buildServer(namespace)
		if err := createAdmitted(ctx, c, server); err != nil {
			return nil, err
		}
		if err := c.Create(ctx, buildService(namespace)); err != nil {
			return nil, fmt.Errorf("creating the Service: %w", err)
		}
		servers = append(servers, server)
	}
	for _, server := range servers {
		if err := awaitPod(ctx, c, server, isPodReady); err != nil {
			return nil, err
		}
	}
	targets, err := p.readTargets(ctx, c, servers)
	if err != nil {
		return nil, err
	}
	report("connecting from each namespace")
	var dialers []*corev1.Pod
	for _, namespace := range p.listNamespaces() {
		dialer := p.buildDialer(namespace, targets)
		if err := createAdmitted(ctx, c, dialer); err != nil {
			return nil, err
		}
		dialers = append(dialers, dialer)
	}
	var connections []connection
	for _, dialer := range dialers {
		if err := awaitPod(ctx, c, dialer, hasEnded); err != nil {
			return nil, err
		}
		outcomes, err := readOutcomes(dialer, targets)
		if err != nil {
			return nil, err
		}
		connections = append(connections, outcomes...)
	}
	return summarizePackets(connections, targets.dns), nil
}

func (p *Packets) listNamespaces() []string {
	return slices.Concat(p.scratch.attacker.Namespaces, p.scratch.target.Namespaces)
}

// readTargets reads the addresses that the pods connect to.
func (p *Packets) readTargets(ctx context.Context, c client.Client, servers []*corev1.Pod) (*targets, error) {
	t := &targets{tenants: map[string]*estate.Tenant{}}
	for _, tenant := range []*estate.Tenant{p.scratch.attacker, p.scratch.target} {
		for _, namespace := range tenant.Namespaces {
			t.tenants[namespace] = tenant
		}
	}
	for _, server := range servers {
		var service corev1.Service
		if err := c.Get(ctx, client.ObjectKeyFromObject(server), &service); err != nil {
			return nil, fmt.Errorf("reading the Service: %w", err)
		}
		t.servers = append(t.servers, serverAddresses{namespace: server.Namespace, pod: listPodIPs(server), service: service.Spec.ClusterIPs})
	}
	for _, a := range p.scratch.Attacks() {
		if strings.HasPrefix(a.Name, "ask-instance-metadata-at-") && a.Flow.FromNamespace == p.scratch.attacker.Namespaces[0] {
			t.metadata = append(t.metadata, a.Flow.ToIP)
		}
	}
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes, client.Limit(maxNodes)); err != nil {
		return nil, fmt.Errorf("reading the nodes: %w", err)
	}
	for _, node := range nodes.Items {
		for _, address := range node.Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				t.nodes = append(t.nodes, nodeAddress{node.Name, address.Address})
			}
		}
	}
	var server corev1.Service
	if err := c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}, &server); err != nil {
		return nil, fmt.Errorf("reading the API server's Service: %w", err)
	}
	t.apiServers = server.Spec.ClusterIPs
	var dns corev1.Service
	err := c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "kube-dns"}, &dns)
	t.dns = err == nil
	return t, client.IgnoreNotFound(err)
}

// maxNodes is the maximum number of nodes whose kubelet the pods connect to.
const maxNodes = 5

// createAdmitted creates a pod as soon as the policies have read the rules of its namespace:
// they refuse pods until then.
func createAdmitted(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pause, admitting, true, func(ctx context.Context) (bool, error) {
		last = c.Create(ctx, pod)
		return last == nil, ignoreRefusal(last)
	})
	if err != nil {
		return fmt.Errorf("creating the pod %s/%s: %w", pod.Namespace, pod.Name, cmp.Or(last, err))
	}
	return nil
}

// ignoreRefusal returns nil for the errors of a namespace that is not set up yet.
func ignoreRefusal(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// awaitPod reads a pod until it has reached a state. The error explains why it has not.
func awaitPod(ctx context.Context, c client.Client, pod *corev1.Pod, reached func(*corev1.Pod) bool) error {
	err := wait.PollUntilContextCancel(ctx, polling, true, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return false, err
		}
		return reached(pod), nil
	})
	if err == nil {
		return nil
	}
	if reason := explainWaiting(pod); reason != "" && ctx.Err() != nil {
		return fmt.Errorf("the pod %s/%s does not run: %s: %w", pod.Namespace, pod.Name, reason, err)
	}
	return fmt.Errorf("waiting for the pod %s/%s: %w", pod.Namespace, pod.Name, err)
}
