package verify_test

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/observe/netpol"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/rules/evaluator"
	"croft.dev/croft/internal/walls/wall"
)

// unjudged are the attacks that need a cluster, with the reason. The list may only shrink.
var unjudged = []struct {
	reason string
	is     func(attack.Attack) bool
}{
	{"quotas count the objects in a cluster", func(a attack.Attack) bool { return a.StoppedBy.Name == attack.ByQuota.Name }},
	{"sweeps try every kind that a cluster serves", func(a attack.Attack) bool { return a.Sweep != nil }},
	{"the API server answers reviews of access itself", func(a attack.Attack) bool {
		return a.Request != nil && strings.HasPrefix(reflect.TypeOf(a.Request.Object).Elem().Name(), "SelfSubject")
	}},
	{"the API server's own validation of a kind", func(a attack.Attack) bool { return a.StoppedBy.Name == attack.ByAdminAccess.Name }},
	{"the API server writes managedFields", func(a attack.Attack) bool { return a.Name == "fill-a-pod-by-fields" }},
	{"a kind sent in another version than the policy's is converted", func(a attack.Attack) bool { return a.Name == "scale-by-too-many-in-v1" }},
}

// offlineScene is two scratch tenants with the walls around them, without a cluster.
type offlineScene struct {
	scratch   *verify.Scratch
	objects   []client.Object
	evaluator *evaluator.Evaluator
	runner    *verify.Runner
	users     map[string]map[v1alpha1.Role]user.Info
}

func newOfflineScene(t testing.TB, scratch *verify.Scratch) *offlineScene {
	t.Helper()
	platform, by, on := scratch.GetParts()
	s := &offlineScene{scratch: scratch, users: verify.ListUsers(by, on)}
	s.objects = append(wall.PlatformObjects(platform), scratch.Objects()...)
	for _, name := range []string{"default", "kube-system", "openshift-dns", "ingress"} {
		s.objects = append(s.objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	var err error
	if s.evaluator, err = evaluator.New(s.objects); err != nil {
		t.Fatal(err)
	}
	if s.runner, err = newOfflineRunner(s.objects); err != nil {
		t.Fatal(err)
	}
	return s
}

// newOfflineRunner returns a Runner that evaluates flows by the network policies among the
// objects.
func newOfflineRunner(objects []client.Object) (*verify.Runner, error) {
	var namespaces []corev1.Namespace
	var policies []client.Object
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Namespace:
			o = o.DeepCopy()
			metav1.SetMetaDataLabel(&o.ObjectMeta, corev1.LabelMetadataName, o.Name)
			namespaces = append(namespaces, *o)
		case *networkingv1.NetworkPolicy:
			policies = append(policies, o)
		case *unstructured.Unstructured:
			if strings.Contains(o.GetKind(), "NetworkPolicy") || strings.Contains(o.GetKind(), "NetworkSet") || o.GetKind() == "Tier" {
				policies = append(policies, o)
			}
		}
	}
	found, err := netpol.NewFromObjects(namespaces, policies)
	return verify.NewOfflineRunner(found), err
}

// applyMutation returns the scene after a mutation.
func (s *offlineScene) applyMutation(m mutation) (*offlineScene, error) {
	next := *s
	next.objects = slices.Clone(s.objects)
	for _, c := range m {
		if c.added {
			next.objects = append(next.objects, c.object)
			continue
		}
		i := slices.IndexFunc(next.objects, func(o client.Object) bool { return isSameObject(o, c.object) })
		if i < 0 {
			continue // the object belongs to another scene
		}
		if c.edit == nil {
			next.objects = slices.Delete(next.objects, i, i+1)
			continue
		}
		after := next.objects[i].DeepCopyObject().(client.Object)
		c.edit(after)
		next.objects[i] = after
	}
	var err error
	if next.evaluator, err = s.evaluator.WithObjects(next.objects); err != nil {
		return nil, err
	}
	next.runner, err = newOfflineRunner(next.objects)
	return &next, err
}

func isSameObject(a, b client.Object) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && a.GetObjectKind().GroupVersionKind().Kind == b.GetObjectKind().GroupVersionKind().Kind &&
		a.GetName() == b.GetName() && a.GetNamespace() == b.GetNamespace()
}

// canEvaluate reports whether an attack can be tried without a cluster.
func canEvaluate(a attack.Attack) bool {
	for _, u := range unjudged {
		if u.is(a) {
			return false
		}
	}
	return true
}

// tryAttack tries an attack without a cluster.
func (s *offlineScene) tryAttack(ctx context.Context, a attack.Attack) (verify.Result, error) {
	if a.Request == nil {
		return s.runner.Try(ctx, a), nil
	}
	answer, err := s.answerAttack(ctx, a)
	if err != nil {
		return verify.Result{}, err
	}
	var outcome error
	if answer.Err() == nil && a.Outcome != nil && answer.Object != nil {
		got := a.Request.Object.DeepCopyObject().(client.Object)
		if err := convertInto(answer.Object, got); err != nil {
			return verify.Result{}, err
		}
		outcome = a.Outcome(got)
	}
	return verify.EvaluateAnswer(a, answer.Err(), answer.Warnings, outcome), nil
}

// answerAttack returns the evaluator's answer to an attack's request.
func (s *offlineScene) answerAttack(ctx context.Context, a attack.Attack) (evaluator.Answer, error) {
	e, r, err := s.buildRequest(ctx, a)
	if err != nil {
		return evaluator.Answer{}, err
	}
	return e.Evaluate(ctx, r)
}

// buildRequest returns an attack's request, and the evaluator with the objects that it needs.
func (s *offlineScene) buildRequest(ctx context.Context, a attack.Attack) (*evaluator.Evaluator, evaluator.Request, error) {
	who := s.users[a.Attacker][cmp.Or(a.Role, v1alpha1.RoleOperator)]
	if len(a.AsGroups) > 0 {
		who = &user.DefaultInfo{Name: cmp.Or(a.AsUser, "croft-verify"), Groups: append([]string{"system:authenticated"}, a.AsGroups...)}
	}
	e, err := s.evaluator.With(a.Setup...)
	if err != nil {
		return nil, evaluator.Request{}, err
	}
	standing := slices.Clone(s.objects)
	for _, o := range a.Setup {
		if _, binding := o.(*corev1.Binding); binding {
			continue
		}
		made, err := storeByPlatform(ctx, e, o)
		if err != nil {
			return nil, evaluator.Request{}, err
		}
		standing = append(standing, made)
	}
	r, err := newRequest(a.Request, who, standing)
	// The node authorizer, not RBAC, gives kubelets their rights.
	r.Authorized = slices.Contains(a.AsGroups, user.NodesGroup)
	return e, r, err
}

// storeByPlatform returns an object as it is stored when the platform creates it.
func storeByPlatform(ctx context.Context, e *evaluator.Evaluator, o client.Object) (client.Object, error) {
	admin := &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}
	r, err := newRequest(&attack.Request{Verb: attack.Create, Object: o}, admin, nil)
	if err != nil {
		return nil, err
	}
	answer, err := e.Evaluate(ctx, r)
	if err != nil || answer.Object == nil {
		return o, err
	}
	made := o.DeepCopyObject().(client.Object)
	return made, convertInto(answer.Object, made)
}

func convertInto(u *unstructured.Unstructured, o client.Object) error {
	if to, ok := o.(*unstructured.Unstructured); ok {
		to.Object = u.Object
		return nil
	}
	return k8sruntime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o)
}

var kinds = sync.OnceValue(scheme.New)

func newRequest(a *attack.Request, who user.Info, standing []client.Object) (evaluator.Request, error) {
	kind, err := apiutil.GVKForObject(a.Object, kinds())
	if err != nil {
		return evaluator.Request{}, err
	}
	r := evaluator.Request{
		User: who, Verb: string(a.Verb), Resource: evaluator.FindResource(kind), Subresource: a.Subresource,
		Namespace: a.Object.GetNamespace(), Name: a.Object.GetName(),
	}
	switch a.Verb {
	case attack.Create:
		object := a.Object
		if a.Body != nil {
			object = a.Body
		}
		r.Object, err = convertToUnstructured(object)
		return r, err
	case attack.Update, attack.Patch, attack.Delete:
		i := slices.IndexFunc(standing, func(o client.Object) bool {
			return reflect.TypeOf(o) == reflect.TypeOf(a.Object) && client.ObjectKeyFromObject(o) == client.ObjectKeyFromObject(a.Object) &&
				(kind.Empty() || newKind(o) == kind.Kind)
		})
		if i < 0 && a.Verb == attack.Delete {
			return r, nil // authorization comes before the lookup of the object
		}
		if i < 0 {
			return r, fmt.Errorf("%s %s does not stand", kind.Kind, a.Object.GetName())
		}
		if r.Old, err = convertToUnstructured(standing[i]); err != nil {
			return r, err
		}
		if a.Verb == attack.Delete {
			r.Options = &metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "DeleteOptions"}, GracePeriodSeconds: a.GracePeriodSeconds}
			return r, nil
		}
		changed := standing[i].DeepCopyObject().(client.Object)
		if a.Change != nil {
			if err := a.Change(changed); err != nil {
				return r, err
			}
		}
		r.Object, err = convertToUnstructured(changed)
	default: // reads have no object
	}
	return r, err
}

func newKind(o client.Object) string {
	kind, _ := apiutil.GVKForObject(o, kinds())
	return kind.Kind
}

func convertToUnstructured(o client.Object) (*unstructured.Unstructured, error) {
	// The content of an unstructured object is shared with other readers.
	content, err := k8sruntime.DefaultUnstructuredConverter.ToUnstructured(o.DeepCopyObject())
	if err != nil {
		return nil, err
	}
	kind, err := apiutil.GVKForObject(o, kinds())
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kind)
	return u, err
}

// TestWallsHoldWithoutCluster tries attacks without a cluster, in milliseconds each, for quick runs after a change of a
// rule. TestWallsHold tries the same attacks on a real one, and compares the evaluator with it.
func TestWallsHoldWithoutCluster(t *testing.T) {
	scratch, err := verify.NewScratch(newPlatform("ingress"))
	if err != nil {
		t.Fatal(err)
	}
	s := newOfflineScene(t, scratch)
	judged, all := 0, scratch.Attacks()
	for _, a := range all {
		if !canEvaluate(a) {
			continue
		}
		judged++
		result, err := s.tryAttack(t.Context(), a)
		if err != nil {
			t.Errorf("%s/%s: %v", a.Wall, a.Name, err)
		} else if result.Result != verify.Held {
			t.Errorf("%s/%s (%s) is %s: %s", a.Wall, a.Name, a.StoppedBy.Name, result.Result, result.Message)
		}
	}
	for _, u := range unjudged {
		n := len(slices.DeleteFunc(slices.Clone(all), func(a attack.Attack) bool { return !u.is(a) }))
		fmt.Printf("not judged without a cluster: %d attacks: %s\n", n, u.reason)
	}
	if judged*100 < len(all)*85 {
		t.Errorf("%d of %d attacks and mirrors are judged", judged, len(all))
	}
}

// offlineLab tries mutants without a cluster.
type offlineLab struct {
	scenes map[*proving]*offlineScene
	// sound are the attacks that can be tried, by scene.
	sound map[*proving][]attack.Attack
}

func newOfflineLab(t testing.TB, scenes []*proving) *offlineLab {
	t.Helper()
	l := &offlineLab{scenes: map[*proving]*offlineScene{}, sound: map[*proving][]attack.Attack{}}
	for _, p := range scenes {
		l.addScene(t, p, func(attack.Attack) bool { return true })
	}
	return l
}

// addScene adds a scene with the attacks that want selects.
func (l *offlineLab) addScene(t testing.TB, p *proving, want func(attack.Attack) bool) {
	t.Helper()
	s := newOfflineScene(t, p.scratch)
	l.scenes[p] = s
	l.sound[p] = s.listHeldAttacks(t.Context(), func(a attack.Attack) bool { return want(a) && (a.Pairs == nil || a.Kind == attack.Breach) })
}

// listHeldAttacks returns the attacks that can be tried and are held.
func (s *offlineScene) listHeldAttacks(ctx context.Context, want func(attack.Attack) bool) []attack.Attack {
	all := slices.DeleteFunc(s.scratch.Attacks(), func(a attack.Attack) bool { return !canEvaluate(a) || !want(a) })
	held := make([]bool, len(all))
	runConcurrently(len(all), func(i int) {
		r, err := s.tryAttack(ctx, all[i])
		held[i] = err == nil && r.Result == verify.Held
	})
	var sound []attack.Attack
	for i, a := range all {
		if held[i] {
			sound = append(sound, a)
		}
	}
	return sound
}

// runConcurrently calls do for each index, with one concurrent call per core.
func runConcurrently(times int, do func(i int)) {
	turns := make(chan struct{}, runtime.GOMAXPROCS(0))
	var group sync.WaitGroup
	for i := range times {
		turns <- struct{}{}
		group.Go(func() {
			defer func() { <-turns }()
			do(i)
		})
	}
	group.Wait()
}

// runMutants tries each mutant, one per core concurrently, and returns the names of the attacks
// that detected them. The name is empty for mutants that are only detected in a cluster.
func (l *offlineLab) runMutants(ctx context.Context, all []*proving, mutants []mutant) []finding {
	findings := make([]finding, len(mutants))
	runConcurrently(len(mutants), func(i int) {
		findings[i] = finding{mutant: mutants[i].name}
		findings[i].noticedBy, findings[i].err = l.tryMutant(ctx, all, mutants[i])
	})
	return findings
}

func (l *offlineLab) tryMutant(ctx context.Context, all []*proving, m mutant) (string, error) {
	scenes := m.scenes
	if scenes == nil {
		scenes = all
	}
	for _, p := range scenes {
		if m.buried != nil {
			if by, err := l.removePartsBefore(ctx, p, m.buried); by != "" || err != nil {
				return by, err
			}
			continue
		}
		changed, err := l.scenes[p].applyMutation(m.mutate)
		if err != nil {
			return "", err
		}
		if by := l.findBreach(ctx, p, changed, m.suspects); by != "" {
			return by, nil
		}
	}
	return "", nil
}

// findBreach returns the name of the first attack with the wrong outcome.
func (l *offlineLab) findBreach(ctx context.Context, p *proving, s *offlineScene, want func(attack.Attack) bool) string {
	for _, a := range l.sound[p] {
		if !want(a) {
			continue
		}
		if r, err := s.tryAttack(ctx, a); err == nil && r.Result == verify.Breached {
			return a.Name
		}
	}
	return ""
}

func (l *offlineLab) removePartsBefore(ctx context.Context, p *proving, b *hiddenRule) (string, error) {
	for _, part := range b.before {
		bare, err := l.scenes[p].applyMutation(part)
		if err != nil {
			return "", err
		}
		refused := map[string]bool{}
		for _, a := range l.sound[p] {
			if !b.attacks(a) {
				continue
			}
			if r, err := bare.tryAttack(ctx, a); err == nil && strings.Contains(r.Message, b.refusal) {
				refused[a.Name] = true
			}
		}
		if len(refused) == 0 {
			continue
		}
		without, err := bare.applyMutation(b.rule)
		if err != nil {
			return "", err
		}
		return l.findBreach(ctx, p, without, func(a attack.Attack) bool { return refused[a.Name] }), nil
	}
	return "", nil
}

// TestRulesWithoutCluster removes each rule, each part of a mutation and each binding, without
// a cluster: seconds after a change of a rule it shows whether the attacks still test it.
// TestMutants also removes all other objects.
func TestRulesWithoutCluster(t *testing.T) {
	started := time.Now()
	l := newOfflineScenes(t)
	platform := l.scenes[0].listPlatformObjects()
	deep := l.buildDeepMutants(platform)
	mutants := slices.Concat(l.buildPolicyMutants(platform), deep, slices.DeleteFunc(l.buildRuleMutants(platform), func(m mutant) bool {
		return slices.ContainsFunc(deep, func(d mutant) bool { return d.name == m.name })
	}))
	reportFindings(t, l.offline.runMutants(t.Context(), l.scenes, mutants), time.Since(started))
}

// newOfflineScenes returns a lab without a cluster.
func newOfflineScenes(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t, scenes: []*proving{newOfflineProving(t, "whole", newPlatform("ingress")), newOfflineProving(t, "alone", newPlatform())}}
	l.offline = newOfflineLab(t, l.scenes)
	l.sound = l.offline.sound
	return l
}

// newOfflineProving returns two scratch tenants without a cluster.
func newOfflineProving(t *testing.T, name string, platform v1alpha1.Platform) *proving {
	t.Helper()
	scratch, err := verify.NewScratch(platform)
	if err != nil {
		t.Fatal(err)
	}
	p := &proving{name: name, scratch: scratch}
	p.platform, p.by, p.on = scratch.GetParts()
	return p
}
