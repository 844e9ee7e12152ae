package interfaces

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/network/attach"
)

func TestParseInstanceID(t *testing.T) {
	for id, want := range map[string]string{
		"aws:///us-west-2a/i-0123": "i-0123", "": "", "kwok://node-1": "", "aws:///us-west-2a/": "", "aws:///i-0123": "",
	} {
		if got := parseInstanceID(id); got != want {
			t.Errorf("%q: %q, not %q", id, got, want)
		}
	}
}

func newClaim() *karpenterv1.NodeClaim {
	return &karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "telco-1", UID: "u1", Labels: map[string]string{
			karpenterv1.NodePoolLabelKey: "telco", corev1.LabelTopologyZone: "us-west-2a", corev1.LabelInstanceTypeStable: "m5.large",
		}},
		Status: karpenterv1.NodeClaimStatus{ProviderID: "aws:///us-west-2a/i-1"},
	}
}

func TestClaims(t *testing.T) {
	want := attach.Claim{Name: "telco-1", UID: "u1", Pool: "telco", Zone: "us-west-2a", Instance: "i-1", InstanceType: "m5.large"}
	if got := convertClaims([]karpenterv1.NodeClaim{*newClaim()})[0]; got != want {
		t.Errorf("%+v", got)
	}
}

// TestClaimPredicate fails if a NodeClaim is not reconciled when it is launched and when it
// ends, or if it is reconciled for its other conditions.
func TestClaimPredicate(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*karpenterv1.NodeClaim)
		want   bool
	}{
		"launched":   {func(n *karpenterv1.NodeClaim) { n.Status.ProviderID = "aws:///us-west-2a/i-2" }, true},
		"deleted":    {func(n *karpenterv1.NodeClaim) { n.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, true},
		"labelled":   {func(n *karpenterv1.NodeClaim) { n.Labels[corev1.LabelTopologyZone] = "us-west-2b" }, true},
		"registered": {func(n *karpenterv1.NodeClaim) { n.Status.NodeName = "node" }, false},
	} {
		after := newClaim()
		test.change(after)
		if got := newClaimPredicate().Update(event.UpdateEvent{ObjectOld: newClaim(), ObjectNew: after}); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestListProblems(t *testing.T) {
	full := fmt.Errorf("operation error EC2: CreateNetworkInterface, https response error StatusCode: 400, RequestID: 0815, %w",
		&smithy.GenericAPIError{Code: "InsufficientFreeAddressesInSubnet", Message: "The subnet is full."})
	r := &Result{
		Plan: &attach.Plan{Problems: []attach.Problem{
			{Pool: "telco", Claim: "telco-1", Networks: []string{"n3", "n6"}, Message: "too few interfaces"},
			{Pool: "telco", Claim: "telco-2", Networks: []string{"n3", "n6"}, Message: "too few interfaces"},
			{Pool: "telco", Claim: "telco-3", Networks: []string{"n6"}, Message: "no zone"},
		}},
		Failures: []Failure{{Object: "node claim telco-4", Network: "n3", Code: "InsufficientFreeAddressesInSubnet", Err: full}},
	}
	got := strings.Join(listProblems("n3", r), "\n")
	const want = "node claim telco-4: InsufficientFreeAddressesInSubnet: The subnet is full.\npool telco: too few interfaces"
	if got != want {
		t.Errorf("%q", got)
	}
	var many []string
	for i := range 9 {
		many = append(many, fmt.Sprint(i))
	}
	if got := formatProblems(many); !strings.HasSuffix(got, "and 4 more") {
		t.Errorf("%q", got)
	}
}

// TestShortenError fails if the same failure results in different messages: its condition
// would be written again and again.
func TestShortenError(t *testing.T) {
	const denied = "operation error EC2: CreateNetworkInterface, https response error StatusCode: 403, RequestID: %s, " +
		"api error UnauthorizedOperation: You are not authorized to perform this operation. Encoded authorization failure message: %s"
	one, two := shortenError(fmt.Errorf(denied, "1", "abc")), shortenError(fmt.Errorf(denied, "2", "def"))
	if one != two || one != "UnauthorizedOperation: You are not authorized to perform this operation." {
		t.Errorf("%q, %q", one, two)
	}
	if got := shortenError(errors.New("no route to host")); got != "no route to host" {
		t.Errorf("%q", got)
	}
}

func TestIsTransient(t *testing.T) {
	inUse := &smithy.GenericAPIError{Code: "InvalidParameterValue", Message: "Network interface 'eni-1' is currently in use."}
	index := &smithy.GenericAPIError{Code: "InvalidParameterValue", Message: "Instance 'i-1' already has an interface attached at device index '1'."}
	for name, test := range map[string]struct {
		key  string
		err  error
		want bool
	}{
		"an interface that is attached meanwhile": {"delete eni-1", inUse, true},
		"a device that is taken":                  {"attach eni-1", index, true},
		"another parameter":                       {"create u1/n3", inUse, false},
		"an instance that is not there":           {"attach eni-1", &smithy.GenericAPIError{Code: "InvalidInstanceID.NotFound"}, true},
		"no rights":                               {"attach eni-1", &smithy.GenericAPIError{Code: "UnauthorizedOperation"}, false},
		"no network":                              {"attach eni-1", errors.New("connection refused"), true},
	} {
		if got := isTransient(test.key, test.err); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
