package recommend

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"croft.dev/croft/internal/cost/objects"
)

// Request is a pair of lower requests for a container of a workload. A resource that stays is empty.
type Request struct {
	// Workload is the namespace, kind and name of the controller.
	Workload  string `json:"workload"`
	Container string `json:"container"`
	CPU       string `json:"cpu,omitempty"`
	CPUNow    string `json:"cpuNow,omitempty"`
	Memory    string `json:"memory,omitempty"`
	MemoryNow string `json:"memoryNow,omitempty"`
}

// Requests are far above usage if they are more than twice as high, and are then recommended as 3/2 of usage,
// rounded up.
const (
	cpuStep    = 10       // thousandths
	memoryStep = 16 << 20 // bytes
)

const assumeUsage = "the present usage, which is one sample, is typical: compare it with a longer time before you lower requests"

// containerKey identifies the containers of a workload that have the same template.
type containerKey struct{ workload, container string }

// recommendRequests recommends lower requests, if the pods then need fewer or cheaper nodes of a present type than
// with their present requests.
func (c *cluster) recommendRequests(p *pool, same *placement) []Recommendation {
	lower := c.lowerRequests(p)
	if len(lower) == 0 {
		return nil
	}
	limit := p.sumHourly()
	if same != nil {
		limit = same.hourly
	}
	best := c.findCheapest(p, applyRequests(p.pods, lower), limit, func(t *instanceType) bool { return p.types[t.name] })
	if best == nil || !isWorthwhile(best.hourly, limit) {
		return nil
	}
	r := p.makeRecommendation(Requests, p.nodes, best.nodes)
	for _, key := range sortKeys(lower) {
		r.Requests = append(r.Requests, lower[key].toRequest(key))
	}
	r.Reason = fmt.Sprintf("%s present usage: with requests of 1.5 × usage, %s on %s in place of %s",
		formatRequesting(len(lower)), p.formatFit(), best.formatNodes(), formatTypes(p.nodes))
	r.Assumptions = append(r.Assumptions, assumeUsage)
	if !p.consolidates() {
		r.Change = p.formatChange(p.listConsolidation())
		r.Assumptions = append(r.Assumptions, assumeMoves)
	}
	return []Recommendation{r}
}

func formatRequesting(containers int) string {
	if containers == 1 {
		return "1 container requests more than twice its"
	}
	return fmt.Sprintf("%d containers request more than twice their", containers)
}

// lowered are the present and the recommended requests of a container. A recommendation of 0 changes nothing.
type lowered struct{ cpu, cpuNow, memory, memoryNow int64 }

func (l lowered) toRequest(key containerKey) Request {
	r := Request{Workload: key.workload, Container: key.container}
	if l.cpu > 0 {
		r.CPU, r.CPUNow = formatCPU(l.cpu), formatCPU(l.cpuNow)
	}
	if l.memory > 0 {
		r.Memory, r.MemoryNow = formatMemory(l.memory), formatMemory(l.memoryNow)
	}
	return r
}

func formatCPU(milli int64) string {
	return resource.NewMilliQuantity(milli, resource.DecimalSI).String()
}

func formatMemory(bytes int64) string { return resource.NewQuantity(bytes, resource.BinarySI).String() }

// lowerRequests returns the lower requests of all containers that request more than twice the highest usage among
// the pods of their workload. Workloads with a pod without known usage are left out.
func (c *cluster) lowerRequests(p *pool) map[containerKey]lowered {
	usage, requests, unknown := map[containerKey]size{}, map[containerKey]size{}, map[containerKey]bool{}
	for _, each := range p.pods {
		for i := range each.object.Spec.Containers {
			container := &each.object.Spec.Containers[i]
			key := containerKey{each.workload, container.Name}
			used, known := c.usage[each.name][container.Name]
			if !known || each.object.Spec.Resources != nil { // the pod's own requests count, not its containers'
				unknown[key] = true
			}
			usage[key] = usage[key].max(readExactly(used))
			requests[key] = requests[key].max(readExactly(container.Resources.Requests))
		}
	}
	all := map[containerKey]lowered{}
	for key, now := range requests {
		l := lowered{cpu: lowerRequest(now.cpu, usage[key].cpu, cpuStep), cpuNow: now.cpu,
			memory: lowerRequest(now.memory, usage[key].memory, memoryStep), memoryNow: now.memory}
		if !unknown[key] && l.cpu+l.memory > 0 {
			all[key] = l
		}
	}
	return all
}

// readExactly returns memory in bytes.
func readExactly(list corev1.ResourceList) size {
	return size{cpu: list.Cpu().MilliValue(), memory: list.Memory().Value()}
}

func (s size) max(o size) size {
	return size{max(s.cpu, o.cpu), max(s.memory, o.memory), max(s.pods, o.pods)}
}

// lowerRequest returns a lower request in steps, or 0 if the request is not far above usage.
func lowerRequest(request, usage, step int64) int64 {
	rounded := max(divideUp(usage*3, 2*step), 1) * step
	if request <= 2*usage || rounded >= request {
		return 0
	}
	return rounded
}

// applyRequests returns the pods with lower requests.
func applyRequests(pods []*pod, all map[containerKey]lowered) []*pod {
	changed := make([]*pod, len(pods))
	for i, each := range pods {
		copied := *each
		copied.object = each.object.DeepCopy()
		for j := range copied.object.Spec.Containers {
			container := &copied.object.Spec.Containers[j]
			l := all[containerKey{each.workload, container.Name}]
			if l.cpu > 0 && container.Resources.Requests.Cpu().MilliValue() > l.cpu {
				container.Resources.Requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(l.cpu, resource.DecimalSI)
			}
			if l.memory > 0 && container.Resources.Requests.Memory().Value() > l.memory {
				container.Resources.Requests[corev1.ResourceMemory] = *resource.NewQuantity(l.memory, resource.BinarySI)
			}
		}
		read, _ := objects.ReadPod(copied.object)
		copied.size = size{read.CPU, read.Memory, 1}
		changed[i] = &copied
	}
	return changed
}

func sortKeys(all map[containerKey]lowered) []containerKey {
	keys := make([]containerKey, 0, len(all))
	for key := range all {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b containerKey) int {
		return strings.Compare(a.workload+" "+a.container, b.workload+" "+b.container)
	})
	return keys
}
