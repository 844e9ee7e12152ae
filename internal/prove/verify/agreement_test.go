package verify_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/rules/evaluator"
	"croft.dev/croft/internal/walls/wall"
)

// answers has a real API server's last answer to each attack.
type answers struct {
	mu sync.Mutex
	of map[string]answer
	// otherwise maps the names of attacks that the engine answers differently from the
	// evaluator to the reason.
	otherwise map[string]string
}

type answer struct {
	attack   attack.Attack
	object   client.Object
	err      error
	warnings []string
}

func (all *answers) recordAnswer(a attack.Attack, got client.Object, err error, warnings []string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.of == nil {
		all.of = map[string]answer{}
	}
	all.of[a.Name] = answer{a, got.DeepCopyObject().(client.Object), err, warnings}
}

// answerFunc returns the answer to an attack's request.
type answerFunc func(context.Context, attack.Attack) (evaluator.Answer, error)

// findDifferences compares the API server's answer to each attack and mirror with another answer:
// whether the request is allowed, the refusing rule and its message, the warnings, and the
// resulting object. The API server has more defaults than the evaluator, and reports only one
// of several refusals. The comparison stops when it has found enough differences. The result is
// by the attack's name; compared is the number of compared answers.
func (all *answers) findDifferences(ctx context.Context, ask answerFunc, enough int64) (differences map[string]string, compared int) {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(all.of)), func(name string) bool {
		real := all.of[name]
		_, otherwise := all.otherwise[name]
		return otherwise || !canEvaluate(real.attack) || meta.IsNoMatchError(real.err)
	})
	found := make([]string, len(names))
	var so atomic.Int64
	runConcurrently(len(names), func(i int) {
		if so.Load() >= enough {
			return
		}
		real := all.of[names[i]]
		own, err := ask(ctx, copyServiceAddress(real))
		if err != nil {
			found[i] = err.Error()
		} else if difference := compareAnswers(real, own); difference != "" {
			found[i] = "the API server and the evaluator differ: " + difference
		}
		if found[i] != "" {
			so.Add(1)
		}
	})
	differences = map[string]string{}
	for i, f := range found {
		if f != "" {
			differences[names[i]] = f
		}
	}
	return differences, len(names)
}

// copyServiceAddress returns the attack with the recorded address of its Service, if it requests a
// free one.
func copyServiceAddress(real answer) attack.Attack {
	sent, ok := real.object.(*corev1.Service)
	if !ok {
		return real.attack
	}
	a, request := real.attack, *real.attack.Request
	request.Object = request.Object.DeepCopyObject().(client.Object)
	a.Request = &request
	_ = attack.SetClusterIP(request.Object, func() (string, error) { return sent.Spec.ClusterIP, nil })
	return a
}

// expectAgreement fails for each difference between the API server and the evaluator, and if the
// comparison does not detect evaluators that are wrong on purpose. The runner repeats attacks
// whose answers differ: a mirror is always allowed, so it may have been answered before a
// policy was in force.
func (all *answers) expectAgreement(t *testing.T, p *proving, runner *verify.Runner) {
	t.Helper()
	s := newOfflineScene(t, p.scratch)
	if p.platform.Placement == v1alpha1.PlacementGatekeeper {
		s.objects = append(s.objects, listMutatingPolicies(p.platform)...)
		all.otherwise = placedOtherwise
		for _, name := range slices.Sorted(maps.Keys(placedOtherwise)) {
			fmt.Printf("not compared where Gatekeeper is the engine: %s: %s\n", name, placedOtherwise[name])
		}
	}
	s.copyClusterMetadata(t, p.admin)
	var differences map[string]string
	var compared int
	_ = wait.PollUntilContextTimeout(t.Context(), 500*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		differences, compared = all.findDifferences(ctx, s.answerAttack, math.MaxInt64)
		var again []attack.Attack
		for name := range differences {
			again = append(again, all.of[name].attack)
		}
		_, err := runner.Run(ctx, again, nil)
		return len(again) == 0, err
	})
	for _, name := range slices.Sorted(maps.Keys(differences)) {
		t.Errorf("%s: %s", name, differences[name])
	}
	fmt.Printf("the API server and the evaluator: %d of %d answers compared, %d differ\n", compared, len(all.of), len(differences))
	if compared*100 < len(all.of)*85 {
		t.Errorf("%d of %d answers are compared", compared, len(all.of))
	}
	wrong := s.buildWrongEvaluators(t)
	for _, name := range slices.Sorted(maps.Keys(wrong)) {
		differences, _ := all.findDifferences(t.Context(), wrong[name], 1)
		if len(differences) == 0 {
			t.Errorf("an evaluator that %s is taken for the API server", name)
			continue
		}
		first := slices.Min(slices.Collect(maps.Keys(differences)))
		fmt.Printf("an evaluator that %s answers differently: %s: %.140s\n", name, first, differences[first])
	}
}

// placedOtherwise maps the attacks and mirrors that Gatekeeper's mutators and the API server's
// policies answer differently to the reason. The list may only shrink.
var placedOtherwise = map[string]string{
	"ask-for-network":           "mutators pass no networks on to Multus, and the message reports it",
	"ask-for-network-elsewhere": "mutators pass no networks on to Multus, and the message reports it",
	"choose-among-own-pools":    "mutators add the tolerations of all of the tenant's pools, a policy that of the pool that is chosen",
	"select-other-pool":         "mutators leave a pool that is asked for, and the rule refuses it; a policy puts the tenant's in its place",
	"pass-for-probe":            "mutators ignore a pod that is marked as a probe of theirs; a policy takes it for its own",
	"tolerate-more":             "mutators add to what is over its bound already, which the message counts",
	"use-host-network":          sharedNode,
	"use-host-processes":        sharedNode,
	"use-host-ipc":              sharedNode,
}

const sharedNode = "mutators set hostUsers on these pods, too, and Kubernetes refuses them before Pod Security"

// listMutatingPolicies returns the API server's mutating policies for a platform with Gatekeeper's
// mutators. The evaluator does not implement Gatekeeper, but pods must be mutated in the same
// way.
func listMutatingPolicies(p *estate.Platform) []client.Object {
	native := *p
	native.Placement = v1alpha1.PlacementNative
	return slices.DeleteFunc(wall.PlatformObjects(&native), func(o client.Object) bool {
		switch o.(type) {
		case *admissionv1.MutatingAdmissionPolicy, *admissionv1.MutatingAdmissionPolicyBinding:
			return false
		}
		return true
	})
}

// copyClusterMetadata takes the labels and annotations of namespaces from a cluster: other field
// managers add some there, and rules count and name them.
func (s *offlineScene) copyClusterMetadata(t *testing.T, admin client.Client) {
	t.Helper()
	for i, o := range s.objects {
		namespace, ok := o.(*corev1.Namespace)
		if !ok {
			continue
		}
		live := &corev1.Namespace{}
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(namespace), live); err != nil {
			t.Fatal(err)
		}
		namespace = namespace.DeepCopy()
		namespace.Labels, namespace.Annotations = live.Labels, live.Annotations
		s.objects[i] = namespace
	}
	var err error
	if s.evaluator, err = s.evaluator.WithObjects(s.objects); err != nil {
		t.Fatal(err)
	}
}

// buildWrongEvaluators returns evaluators that are wrong on purpose, by their fault.
func (s *offlineScene) buildWrongEvaluators(t *testing.T) map[string]answerFunc {
	t.Helper()
	of := func(change func(client.Object) client.Object) answerFunc {
		next := *s
		next.objects = nil
		for _, o := range s.objects {
			if o = change(o.DeepCopyObject().(client.Object)); o != nil {
				next.objects = append(next.objects, o)
			}
		}
		var err error
		if next.evaluator, err = s.evaluator.WithObjects(next.objects); err != nil {
			t.Fatal(err)
		}
		return next.answerAttack
	}
	wrong := map[string]answerFunc{
		"skips mutations": of(func(o client.Object) client.Object {
			if _, ok := o.(*admissionv1.MutatingAdmissionPolicy); ok {
				return nil
			}
			return o
		}),
		"ignores match conditions": of(func(o client.Object) client.Object {
			switch o := o.(type) {
			case *admissionv1.MutatingAdmissionPolicy:
				o.Spec.MatchConditions = nil
			case *admissionv1.ValidatingAdmissionPolicy:
				o.Spec.MatchConditions = nil
			}
			return o
		}),
		"ignores Pod Security": of(func(o client.Object) client.Object {
			if namespace, ok := o.(*corev1.Namespace); ok {
				maps.DeleteFunc(namespace.Labels, func(key, _ string) bool { return strings.HasPrefix(key, podSecurity) })
			}
			return o
		}),
		"ignores RBAC": func(ctx context.Context, a attack.Attack) (evaluator.Answer, error) {
			e, r, err := s.buildRequest(ctx, a)
			if err != nil {
				return evaluator.Answer{}, err
			}
			r.Authorized = true
			return e.Evaluate(ctx, r)
		},
	}
	return wrong
}

func compareAnswers(real answer, own evaluator.Answer) string {
	switch {
	case (real.err == nil) != (own.Err() == nil):
		return "error " + formatError(real.err) + ", evaluator " + formatError(own.Err())
	case real.err != nil:
		if !slices.ContainsFunc(own.Denials, func(d evaluator.Denial) bool { return equalRefusals(real.err, d.Err) }) {
			return "error " + formatError(real.err) + ", evaluator " + formatError(own.Err())
		}
		return ""
	}
	for _, list := range [][2][]string{{real.warnings, own.Warnings}, {own.Warnings, real.warnings}} {
		for _, w := range list[0] {
			same := func(other string) bool { return sortWords(w) == sortWords(other) }
			if attack.IsCroftWarning(w) && !slices.ContainsFunc(list[1], same) {
				return "only one warns: " + w
			}
		}
	}
	if own.Object == nil || real.attack.Request.Subresource != "" {
		return ""
	}
	sent, err := convertToUnstructured(real.object)
	if err != nil {
		return err.Error()
	}
	return findMissingField("", own.Object.Object["spec"], sent.Object["spec"])
}

// equalRefusals compares the text after the name of the object, which only the evaluator may
// know.
func equalRefusals(a, b error) bool {
	return apierrors.ReasonForError(a) == apierrors.ReasonForError(b) && sortWords(cutCore(a)) == sortWords(cutCore(b))
}

// sortWords returns the words of a text, sorted: lists that are made from a map have a random
// order.
func sortWords(text string) string {
	all := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,:()", r) })
	slices.Sort(all)
	return strings.Join(all, " ")
}

// someMarks matches the list of a namespace's labels and annotations in a refusal. The list is
// shortened and has the random order of a Go map, so only its length is compared.
var someMarks = regexp.MustCompile(`behind the walls \(.*\) are written`)

func cutCore(err error) string {
	text := err.Error()
	for _, begin := range []string{"denied request: ", "violates PodSecurity", " cannot ", "is attempting to grant RBAC permissions not currently held"} {
		if i := strings.Index(text, begin); i >= 0 {
			if begin == " cannot " || strings.HasPrefix(begin, "is attempting") {
				return begin
			}
			return someMarks.ReplaceAllStringFunc(text[i:], func(marks string) string {
				_, more, _ := strings.Cut(marks, " and ")
				return fmt.Sprint(strings.Count(marks, ", "), " beside one and ", more)
			})
		}
	}
	return text
}

func formatError(err error) string {
	if err == nil {
		return "none"
	}
	return cmp.Or(err.Error(), "empty")
}

// findMissingField returns a description of the first field of one value that is missing in another
// or differs from it.
func findMissingField(path string, of, in any) string {
	switch of := of.(type) {
	case nil:
		return ""
	case map[string]any:
		to, ok := in.(map[string]any)
		if !ok && len(of) > 0 {
			return path + " is missing"
		}
		for _, key := range slices.Sorted(maps.Keys(of)) {
			if difference := findMissingField(path+"."+key, of[key], to[key]); difference != "" {
				return difference
			}
		}
		return ""
	case []any:
		to, _ := in.([]any)
		if len(of) > len(to) {
			return path + " is shorter"
		}
		for i := range of {
			if difference := findMissingField(path, of[i], to[i]); difference != "" {
				return difference
			}
		}
		return ""
	default:
		if text, _ := of.(string); text == "kube-api-access-" {
			return "" // the API server generates the suffix of the name
		}
		if !equality.Semantic.DeepEqual(of, in) {
			return path + " differs: evaluator " + fmt.Sprint(of) + ", API server " + fmt.Sprint(in)
		}
		return ""
	}
}
