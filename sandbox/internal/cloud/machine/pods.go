package machine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/network/agent"
)

const (
	// again is the pause before an ended program is restarted. The API server's node authorizer
	// may need a moment until it lets the node have the pod's token.
	again = 500 * time.Millisecond
	// tokenSeconds is the validity of a pod's token. After half of it, the program restarts
	// with a new token.
	tokenSeconds = 24 * 60 * 60
)

// pods runs the pods of croft's agent that are bound to a node, as the node's kubelet would.
type pods struct {
	node string
	// config is the kubelet's configuration of its client.
	config  *rest.Config
	machine *hardware

	mu      sync.Mutex
	running map[types.UID]context.CancelFunc
	all     sync.WaitGroup
}

// run runs pods until ctx ends, and returns when they have ended.
func (p *pods) run(ctx context.Context) error {
	kubelet, err := kubernetes.NewForConfig(p.config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(kubelet, 0, informers.WithNamespace(v1alpha1.AgentNamespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", p.node).String()
		}))
	if _, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) {
			if pod, is := o.(*corev1.Pod); is {
				p.startPod(ctx, kubelet, pod)
			}
		},
		DeleteFunc: func(o any) {
			if lost, is := o.(cache.DeletedFinalStateUnknown); is {
				o = lost.Obj
			}
			if pod, is := o.(*corev1.Pod); is {
				p.stopPod(pod.UID)
			}
		},
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	<-ctx.Done()
	factory.Shutdown()
	p.all.Wait()
	return nil
}

func (p *pods) startPod(ctx context.Context, kubelet kubernetes.Interface, pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[pod.UID] != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	p.running[pod.UID] = cancel
	p.all.Go(func() {
		for ctx.Err() == nil {
			if err := p.runAgent(ctx, kubelet, pod); err != nil && ctx.Err() == nil {
				slog.Error("croft's agent", "node", p.node, "error", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(again):
			}
		}
	})
}

func (p *pods) stopPod(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cancel := p.running[uid]; cancel != nil {
		cancel()
		delete(p.running, uid)
	}
}

// runAgent runs croft's agent with the arguments and the token of its pod, until ctx ends or half
// of the token's validity has passed.
func (p *pods) runAgent(ctx context.Context, kubelet kubernetes.Interface, pod *corev1.Pod) error {
	journal, err := findJournal(pod)
	if err != nil {
		return err
	}
	token, err := kubelet.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: ptr.To[int64](tokenSeconds),
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("token: %w", err)
	}
	own := rest.AnonymousClientConfig(p.config)
	own.BearerToken = token.Status.Token
	own.UserAgent = "croft-agent"
	var read agent.BootReader
	if journal != "" {
		read = agent.Journal(p.machine.realPath(journal))
	}
	ctx, cancel := context.WithTimeout(ctx, tokenSeconds*time.Second/2)
	defer cancel()
	return agent.Run(ctx, own, p.node, p.machine, read, slog.With("agent", p.node))
}

// findJournal returns the directory of the journal that the arguments of a pod's agent name; ""
// if they name none.
func findJournal(pod *corev1.Pod) (directory string, err error) {
	args := pod.Spec.Containers[0].Args
	if len(args) == 0 || args[0] != "agent" {
		return "", fmt.Errorf("pod %s runs %q: the machine has no program but croft agent", pod.Name, args)
	}
	flags := pflag.NewFlagSet(args[0], pflag.ContinueOnError)
	flags.StringVar(&directory, "journal", "", "")
	flags.String("node", "", "")
	return directory, flags.Parse(args[1:])
}
