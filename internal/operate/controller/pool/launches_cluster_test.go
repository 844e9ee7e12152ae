package pool_test

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/observe/launches"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/walls/wall"
)

// launchesHeld writes NodeClaims without an instance as Karpenter does. It fails if croft does not
// delete them and hold the pool's launches, if croft or `croft diff` treats the hold as drift, or if
// the hold does not end with the next change of the Pool.
func launchesHeld(f *fixture) {
	const name = "refused"
	pool, nodePool := f.declarePool(name)
	f.Patch(pool, `{"spec":{"limits":{"cpu":"10"}}}`)
	f.AwaitCondition(pool, v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	f.PatchStatus(nodePool, `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Ready","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`)
	f.AwaitReady(pool)

	f.refuse(name, 1)
	condition := f.AwaitCondition(pool, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonLaunchesRefused)
	if !strings.Contains(condition.Message, "InstanceProfileNameInvalid: the profile does not exist") {
		f.Errorf("the message does not name the cause: %s", condition.Message)
	}
	f.awaitHold(nodePool, 1, true)
	if cpu := nodePool.Spec.Limits[corev1.ResourceCPU]; cpu.String() != "10" {
		f.Errorf("the declared limits are now %v", nodePool.Spec.Limits)
	}

	// A change of another field is a repair, which leaves the hold alone.
	f.Patch(nodePool, `{"spec":{"weight":7}}`)
	f.AwaitRepair(pool, "restored NodePool refused, which was changed by somebody")
	f.awaitHold(nodePool, 1, true)
	differences, err := apply.New(f.Client).Diff(f.Context(), f.buildWall(pool)...)
	if err != nil || len(differences) > 0 {
		f.Errorf("the hold is a difference: %v, %s", err, differences)
	}

	// An admin removes the limit.
	f.Patch(nodePool, fmt.Sprintf(`{"spec":{"limits":{%q:null}}}`, v1alpha1.HoldLimit))
	f.refuse(name, 2)
	f.awaitHold(nodePool, 2, true)
	writes := f.Writes.Count()
	f.Patch(pool, `{"spec":{"weight":3}}`)
	f.AwaitReady(pool)
	f.awaitHold(nodePool, 0, false)
	for _, write := range f.Writes.ListSince(writes) {
		if n := strings.Count(strings.Join(f.Writes.ListSince(writes), "\n"), write); n > 4 {
			f.Errorf("%d times %s", n, write)
		}
	}
}

// buildWall returns the objects of a pool.
func (f *fixture) buildWall(pool *v1alpha1.Pool) []client.Object {
	f.Helper()
	e, problems := estate.Build(&manifest.Declaration{Platforms: []v1alpha1.Platform{*operatortest.NewPlatform()}, Pools: []v1alpha1.Pool{*pool}})
	if len(problems) > 0 {
		f.Fatal(problems)
	}
	return wall.PoolObjects(&e.Platform, e.Pools[0])
}

// refuse creates a NodeClaim whose launch is refused, and waits for its deletion.
func (f *fixture) refuse(pool string, attempt int) {
	f.Helper()
	claim := &karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", pool, attempt), Labels: map[string]string{karpenterv1.NodePoolLabelKey: pool}},
		Spec: karpenterv1.NodeClaimSpec{
			NodeClassRef: &karpenterv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: pool},
			Requirements: []karpenterv1.NodeSelectorRequirementWithMinValues{},
		},
	}
	f.Create(claim)
	f.PatchStatus(claim, `{"status":{"conditions":[{"type":"Launched","status":"Unknown","reason":"InstanceProfileNameInvalid",
		"message":"the profile does not exist","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`)
	f.AwaitDeletion(claim)
}

// awaitHold waits until a NodePool has the record of some attempts, and is held or not.
func (f *fixture) awaitHold(nodePool *karpenterv1.NodePool, attempts int, held bool) {
	f.Helper()
	f.Await(fmt.Sprintf("a record of %d attempts, held %t", attempts, held), func() string {
		if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(nodePool), nodePool); err != nil {
			return err.Error()
		}
		refusal := launches.ReadRefusal(nodePool)
		if refusal == nil {
			refusal = &launches.Refusal{}
		}
		if refusal.Attempts != attempts || launches.IsHeld(nodePool) != held || held && !refusal.Until.After(time.Now()) {
			return fmt.Sprintf("it has %+v and the limits %v", refusal, nodePool.Spec.Limits)
		}
		return ""
	})
}
