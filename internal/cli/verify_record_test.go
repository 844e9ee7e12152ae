package cli

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/test/sandbox"
)

// TestRecord writes a result into a Platform's status next to the operator's own fields.
func TestRecord(t *testing.T) {
	sandbox.EndToEnd(t)
	cluster := sandbox.Start(t, sandbox.Options{Components: sandbox.APIOnly})
	c, err := client.New(cluster.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	if err := recordResults(t.Context(), c, nil, 0); err == nil {
		t.Error("there is no Platform, and no error")
	}
	if _, err := install.Install(t.Context(), c, install.Options{}); err != nil {
		t.Fatal(err)
	}
	platform := newDefaultPlatform()
	if err := c.Create(t.Context(), &platform); err != nil {
		t.Fatal(err)
	}
	status := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"observedGeneration":1}}`))
	if err := c.Status().Patch(t.Context(), &platform, status); err != nil {
		t.Fatal(err)
	}
	var results []verify.Result
	for outcome, n := range map[verify.Outcome]int{verify.Held: 4, verify.Breached: 1, verify.BlockedElsewhere: 2, verify.NotTried: 3} {
		for range n {
			results = append(results, verify.Result{Wall: "nodes", Name: "bind", Result: outcome})
		}
	}
	if err := recordResults(t.Context(), c, results, 3*time.Minute); err != nil {
		t.Fatal(err)
	}
	var live v1alpha1.Platform
	if err := c.Get(t.Context(), client.ObjectKey{Name: v1alpha1.PlatformName}, &live); err != nil {
		t.Fatal(err)
	}
	first := live.Status.Verify
	if err := recordResults(t.Context(), c, results[:1], 0); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: v1alpha1.PlatformName}, &live); err != nil {
		t.Fatal(err)
	}
	if h := live.Status.VerifyHistory; len(h) != 1 || !reflect.DeepEqual(&h[0], first) {
		t.Errorf("the history is %+v, want the first result: %+v", h, first)
	}
	v := first
	if v == nil || v.Held != 4 || v.Breached != 1 || v.BlockedElsewhere != 2 || v.NotTried != 3 || v.Version == "" || v.FirstBreach != "nodes/bind" || v.Duration.Duration != 3*time.Minute || time.Since(v.Time.Time) > time.Hour {
		t.Errorf("%+v", v)
	}
	if live.Status.ObservedGeneration != 1 {
		t.Error("the operator's status is lost")
	}
}

// TestAddVerifyStatus expects the last result in verify, the earlier ones in the history, newest first, and no more than fit.
func TestAddVerifyStatus(t *testing.T) {
	newest := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	// result returns the result of a run that ended some hours before the newest.
	result := func(age int) v1alpha1.VerifyStatus {
		return v1alpha1.VerifyStatus{Time: metav1.NewTime(newest.Add(-time.Duration(age) * time.Hour)), Held: int32(age)}
	}
	// recorded returns a status with the results of ages.
	recorded := func(ages ...int) v1alpha1.PlatformStatus {
		var s v1alpha1.PlatformStatus
		for i, age := range ages {
			r := result(age)
			if i == 0 {
				s.Verify = &r
				continue
			}
			s.VerifyHistory = append(s.VerifyHistory, r)
		}
		return s
	}
	// count returns the ages from one to another.
	count := func(from, to int) []int {
		var ages []int
		for age := from; age <= to; age++ {
			ages = append(ages, age)
		}
		return ages
	}
	for name, c := range map[string]struct {
		before []int
		age    int
		want   []int
	}{
		"the first result":                      {nil, 5, []int{5}},
		"a result of a version without history": {[]int{7}, 5, []int{5, 7}},
		"newest first":                          {[]int{7, 9}, 5, []int{5, 7, 9}},
		"another run ended later":               {[]int{3, 9}, 5, []int{3, 5, 9}},
		"in the same second":                    {[]int{5, 9}, 5, []int{5, 5, 9}},
		"the last that fits":                    {count(1, 19), 0, count(0, 19)},
		"the oldest is dropped":                 {count(1, 20), 0, count(0, 19)},
		"a result that is too old":              {count(1, 20), 21, count(1, 20)},
	} {
		t.Run(name, func(t *testing.T) {
			status := recorded(c.before...)
			addVerifyStatus(&status, result(c.age))
			if want := recorded(c.want...); !reflect.DeepEqual(status.Verify, want.Verify) || fmt.Sprint(status.VerifyHistory) != fmt.Sprint(want.VerifyHistory) {
				t.Errorf("got %+v and %+v,\nwant %+v and %+v", status.Verify, status.VerifyHistory, want.Verify, want.VerifyHistory)
			}
		})
	}
}

// TestConcurrentRecords expects both results if another run writes its own between a read and a write.
func TestConcurrentRecords(t *testing.T) {
	breach := func(name string) []verify.Result {
		return []verify.Result{{Wall: "nodes", Name: name, Result: verify.Breached}, {Wall: "nodes", Name: "another", Result: verify.Breached}}
	}
	writes := 0
	c := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(&v1alpha1.Platform{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.PlatformName}}).
		WithStatusSubresource(&v1alpha1.Platform{}).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, under client.Client, resource string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if writes++; writes == 1 {
				if err := recordResults(ctx, under, breach("second"), time.Minute); err != nil {
					t.Error(err)
				}
			}
			return under.SubResource(resource).Patch(ctx, o, patch, opts...)
		},
	}).Build()
	if err := recordResults(t.Context(), c, breach("first"), time.Minute); err != nil {
		t.Fatal(err)
	}
	var live v1alpha1.Platform
	if err := c.Get(t.Context(), client.ObjectKey{Name: v1alpha1.PlatformName}, &live); err != nil {
		t.Fatal(err)
	}
	if live.Status.Verify == nil || len(live.Status.VerifyHistory) != 1 || live.Status.Verify.FirstBreach == live.Status.VerifyHistory[0].FirstBreach {
		t.Errorf("a result is lost: %+v", live.Status)
	}
}

// TestFirstBreach expects a name of limited length, and none without a breach.
func TestFirstBreach(t *testing.T) {
	now := time.Now()
	long := []verify.Result{{Wall: "nodes", Name: "bind", Result: verify.Held}, {Wall: "nodes", Name: strings.Repeat("ö", 300), Result: verify.Breached}}
	if got := buildVerifyStatus(long, now, 0).FirstBreach; len([]rune(got)) != v1alpha1.MaxFirstBreach || !strings.HasPrefix(got, "nodes/ö") {
		t.Errorf("got %q", got)
	}
	if got := buildVerifyStatus(long[:1], now, 0); got.FirstBreach != "" || got.Duration != nil {
		t.Errorf("got %+v", got)
	}
}
