package realnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"croft.dev/croft/sandbox/internal/cgroup"
)

// Options are the settings of a sandbox's real nodes.
type Options struct {
	// Dir is the directory of the nodes' files, Programs the directory of the programs that
	// `make nodes` builds.
	Dir, Programs string
	// Enforced runs the network plugin on each node.
	Enforced bool
	// Cgroup is the name of the sandbox's control groups.
	Cgroup string
	// APIServer is the address of the API server, and Client a client with an
	// administrator's rights.
	APIServer string
	Client    kubernetes.Interface
	// Kubeconfig issues a kubeconfig for a user, at an API server's address.
	Kubeconfig func(server, user string, groups ...string) ([]byte, error)
	// ClientCA is the file of the CA that signs the certificates of kubeconfigs.
	ClientCA string
	// Socket is the path of the Unix socket at which the API server's proxy listens, Health
	// the address of /readyz.
	Socket, Health string
}

// Serve runs nodes until ctx ends.
func Serve(ctx context.Context, log *slog.Logger, o Options) error {
	groups := cgroup.Groups(o.Cgroup)
	if err := errors.Join(groups.Remove(""), os.RemoveAll(o.Dir), os.MkdirAll(o.Dir, 0o700)); err != nil {
		return fmt.Errorf("remove an earlier sandbox's nodes: %w", err)
	}
	network, err := newNetwork()
	if err != nil {
		return err
	}
	m := &manager{Options: o, log: log, groups: groups, network: network, nodes: map[string]*running{}}
	if err := m.startServers(ctx); err != nil {
		return err
	}
	if err := m.publishAPIServer(ctx); err != nil {
		return err
	}
	err = m.run(ctx)
	m.stopAll()
	// The listener removes the socket, too, unless this process ends first.
	if removed := os.Remove(o.Socket); !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return errors.Join(err, groups.Remove(""))
}

// manager starts and stops nodes. One goroutine uses it.
type manager struct {
	Options
	log     *slog.Logger
	groups  cgroup.Groups
	network *network
	nodes   map[string]*running
}

// running is a node's first process.
type running struct {
	Node
	cmd *exec.Cmd
	// ended is closed when the process has ended, with err.
	ended chan struct{}
	err   error
}

// hasEnded reports whether the process has ended.
func (r *running) hasEnded() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// startServers serves images and metadata to nodes, and forwards connections between nodes and the API
// server in both directions.
func (m *manager) startServers(ctx context.Context) error {
	images, err := newImages(m.Programs)
	if err != nil {
		return err
	}
	registryListener, err := m.network.listen(registry)
	if err != nil {
		return err
	}
	metadataListener, err := m.network.listen(metadataAddr + ":80")
	if err != nil {
		return err
	}
	serverListener, err := m.network.listen(apiServer)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(m.Socket); err != nil {
		return err
	}
	proxyListener, err := net.Listen("unix", m.Socket)
	if err != nil {
		return err
	}
	healthListener, err := net.Listen("tcp", m.Health)
	if err != nil {
		return err
	}
	for _, l := range []net.Listener{registryListener, metadataListener, serverListener, proxyListener, healthListener} {
		context.AfterFunc(ctx, func() { _ = l.Close() })
	}
	serve := func(name string, f func() error) {
		go func() {
			if err := f(); err != nil && ctx.Err() == nil {
				m.log.Error("serve", "server", name, "error", err)
			}
		}()
	}
	serve("images", func() error { return http.Serve(registryListener, images) })
	serve("proxy", func() error { return m.network.serveProxy(m.log, proxyListener) })
	serve("health", func() error {
		return http.Serve(healthListener, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	})
	serve("metadata", func() error {
		return http.Serve(metadataListener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "credentials")
		}))
	})
	go forwardConnections(m.log, serverListener, func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", m.APIServer)
	})
	return nil
}

// publishAPIServer writes the endpoints of the Service kubernetes. The API server does not write
// them, since it listens on loopback.
func (m *manager) publishAPIServer(ctx context.Context) error {
	slices := m.Client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault)
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "kubernetes", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{bridgeAddr}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To[int32](6443), Protocol: ptr.To(corev1.ProtocolTCP)}},
	}
	// A resumed sandbox has the endpoints of its previous run.
	if err := slices.Delete(ctx, slice.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	_, err := slices.Create(ctx, slice, metav1.CreateOptions{})
	return err
}

// run compares the Node objects with the running nodes whenever either changes.
func (m *manager) run(ctx context.Context) error {
	// The kernel ends a child with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	factory := informers.NewSharedInformerFactory(m.Client, 0)
	informer := factory.Core().V1().Nodes()
	changed := make(chan struct{}, 1)
	notify := func(any) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	if _, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: notify, DeleteFunc: notify, UpdateFunc: func(_, o any) { notify(o) },
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	restart := time.NewTicker(time.Second)
	defer restart.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-restart.C:
			m.forgetEnded()
		}
		nodes := map[string]bool{}
		for _, o := range informer.Informer().GetStore().List() {
			if node := o.(*corev1.Node); node.Annotations[fake] == "fake" { //nolint:forcetypeassert // the informer's
				nodes[node.Name] = true
			}
		}
		m.reconcile(nodes)
	}
}

// fake is the annotation of the Nodes that Karpenter's kwok provider creates.
const fake = "kwok.x-k8s.io/node"

// forgetEnded removes ended nodes from the list, so that reconcile starts them again.
func (m *manager) forgetEnded() {
	for name, r := range m.nodes {
		if r.hasEnded() {
			m.log.Error("a node has ended", "node", name, "error", r.err)
			delete(m.nodes, name)
		}
	}
}

func (m *manager) reconcile(want map[string]bool) {
	for name, r := range m.nodes {
		if !want[name] {
			m.stopNode(r)
		}
	}
	for name := range want {
		if m.nodes[name] != nil {
			continue
		}
		index := m.findFreeIndex()
		if index == 0 {
			m.log.Error("there are too many nodes: this one stays NotReady", "node", name, "max", MaxNodes)
			continue
		}
		started := time.Now()
		if err := m.startNode(name, index); err != nil {
			m.log.Error("start a node", "node", name, "error", err)
			continue
		}
		m.log.Info("started a node", "node", name, "address", nodeAddr(index), "took", time.Since(started).Round(time.Millisecond))
	}
}

func (m *manager) findFreeIndex() int {
	used := map[int]bool{}
	for _, r := range m.nodes {
		used[r.Index] = true
	}
	for index := 1; index <= MaxNodes; index++ {
		if !used[index] {
			return index
		}
	}
	return 0
}

func (m *manager) startNode(name string, index int) error {
	node := Node{
		Name: name, Index: index, Programs: m.Programs, ClientCA: m.ClientCA, Enforced: m.Enforced,
		Dir: filepath.Join(m.Dir, name),
	}
	node.Kubeconfig, node.ProxyKubeconfig = filepath.Join(node.Dir, "kubelet.kubeconfig"), filepath.Join(node.Dir, "kube-proxy.kubeconfig")
	node.PluginKubeconfig = filepath.Join(node.Dir, "network-plugin.kubeconfig")
	if err := os.MkdirAll(node.Dir, 0o755); err != nil {
		return err
	}
	for path, user := range map[string][]string{
		node.Kubeconfig:      {"system:node:" + name, "system:nodes"},
		node.ProxyKubeconfig: {"system:kube-proxy"},
		// The network plugin reads namespaces, and the pods and policies of all namespaces.
		node.PluginKubeconfig: {"network-plugin", "system:masters"},
	} {
		content, err := m.Kubeconfig("https://"+apiServer, user[0], user[1:]...)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
	var err error
	if node.Cgroup, err = m.groups.Create(name); err != nil {
		return fmt.Errorf("create a control group: %w", err)
	}
	return m.launchInit(node)
}

// launchInit starts the first process of a node, and attaches its network.
func (m *manager) launchInit(node Node) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	argument, err := json.Marshal(node)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(node.Dir, "node.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(self, "init", string(argument))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = newInitAttr()
	attached, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	r := &running{Node: node, cmd: cmd, ended: make(chan struct{})}
	m.nodes[node.Name] = r
	go func() {
		r.err = cmd.Wait()
		close(r.ended)
	}()
	if err := m.network.attachNode(cmd.Process.Pid, node.Index); err != nil {
		m.stopNode(r)
		return err
	}
	return attached.Close()
}

// stopNode ends a node by killing its first process: the kernel then ends all its processes.
func (m *manager) stopNode(r *running) {
	_ = r.cmd.Process.Kill() // it may have ended
	select {
	case <-r.ended:
	case <-time.After(10 * time.Second):
		m.log.Error("a node does not end", "node", r.Name)
	}
	delete(m.nodes, r.Name)
	if err := errors.Join(m.groups.Remove(r.Name), os.RemoveAll(r.Dir)); err != nil {
		m.log.Error("remove a node's files", "node", r.Name, "error", err)
	}
}

func (m *manager) stopAll() {
	for _, r := range m.nodes {
		m.stopNode(r)
	}
}
