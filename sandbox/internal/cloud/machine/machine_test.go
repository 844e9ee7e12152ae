package machine

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/network/agent"
	"croft.dev/croft/internal/network/boot"
	"croft.dev/croft/sandbox/internal/cloud/account"
	"croft.dev/croft/sandbox/internal/cloud/journal"
)

func requireValue[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// newRunningMachine returns the machine of a running instance, the only one of its account.
// Attachments take milliseconds.
func newRunningMachine(t *testing.T) (*hardware, account.Instance) {
	t.Helper()
	a := requireValue[*account.Account](t)(account.Open(filepath.Join(t.TempDir(), "aws.json"),
		account.Settings{Region: "us-west-2", Zones: []string{"us-west-2a"}, Cluster: "demo", Speed: 1000}, time.Now))
	if err := a.PutProfile(account.InstanceProfile{Name: "nodes", Path: "/"}); err != nil {
		t.Fatal(err)
	}
	template := requireValue[account.LaunchTemplate](t)(a.PutTemplate(account.LaunchTemplate{Name: "nodes", Data: account.TemplateData{Profile: "nodes"}}))
	started, refused, err := a.Launch(account.Order{Capacity: account.OnDemand, Count: 1, Offers: []account.Offer{
		{Template: template.Name, Type: "m5.large", Subnet: a.ListSubnets(nil)[0].ID, Zone: "us-west-2a"},
	}})
	if err != nil || len(started) != 1 {
		t.Fatalf("%v, refused: %v", err, refused)
	}
	id := started[0].IDs[0]
	for deadline := time.Now().Add(10 * time.Second); a.FindInstance(id).State != account.Running; {
		if time.Now().After(deadline) {
			t.Fatalf("the instance is %s", a.FindInstance(id).State)
		}
		requireValue[[]account.Instance](t)(a.Advance())
	}
	return &hardware{account: a, instance: id, root: t.TempDir(), links: map[string]*agent.Link{}}, *a.FindInstance(id)
}

// attachInterface attaches an interface, which takes some milliseconds.
func (h *hardware) attachInterface(t *testing.T) account.Interface {
	t.Helper()
	n := requireValue[account.Interface](t)(h.account.CreateInterface(account.NewInterface{Subnet: h.account.ListSubnets(nil)[0].ID, Wanted: account.Wanted{}}))
	requireValue[string](t)(h.account.AttachInterface(n.ID, h.instance, 1))
	return n
}

// TestHardware attaches an interface and runs the plan of croft's agent for it. It fails if the
// plan after that is not empty.
func TestHardware(t *testing.T) {
	h, _ := newRunningMachine(t)
	changes := make(chan struct{}, 10)
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan error, 1)
	go func() { watched <- h.Watch(ctx, func() { changes <- struct{}{} }) }()
	next := func(what string) {
		t.Helper()
		select {
		case <-changes:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s is no change", what)
		}
	}
	next("the beginning")
	n := h.attachInterface(t)
	next("an interface")
	cancel()
	if err := <-watched; err != nil {
		t.Error(err)
	}

	state := agent.State{Networks: []secondary.NodeNetwork{{Network: "n3", MAC: n.MAC, MTU: 1400, ZoneFile: "{}\n"}}}
	path := secondary.ZoneFilePath("n3")
	for round, want := range [][]agent.Action{{agent.WriteFile, agent.SetMTU, agent.SetFilter, agent.SetUp, agent.AddName}, nil} {
		state.Links = requireValue[[]agent.Link](t)(h.Links())
		state.Files = requireValue[map[string]string](t)(h.Files([]string{path}))
		p := agent.Make(state)
		var got []agent.Action
		for _, step := range p.Steps {
			got = append(got, step.Action)
			if err := h.Do(step); err != nil {
				t.Errorf("%s: %v", step, err)
			}
		}
		if !slices.Equal(got, want) || len(p.Missing) > 0 {
			t.Errorf("round %d: %v, missing %v, want %v", round, got, p.Missing, want)
		}
	}
	if len(state.Links) != 2 || !state.Links[0].Up || state.Links[1].Name != "ens6" {
		t.Errorf("the machine has %+v", state.Links)
	}
	for _, step := range []agent.Step{{Action: agent.SetUp, Index: 9}, {Action: "sing", Index: firstIndex}, {Action: agent.SetMTU, Index: firstIndex}} {
		if err := h.Do(step); err == nil {
			t.Errorf("%v is no error", step)
		}
	}
}

// TestKeepJournal fails if croft's agent does not find all events of a boot in the journal, or
// finds events that have not happened yet.
func TestKeepJournal(t *testing.T) {
	h, i := newRunningMachine(t)
	now := time.Now()
	b := journal.Boot{System: journal.AmazonLinux2023, Instance: i.ID, Node: "a", Kernel: now.Add(-2 * time.Second),
		Registers: now.Add(-time.Second), Ready: now.Add(time.Hour)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { h.keepJournal(ctx, b); close(done) }()
	var times boot.Times
	for deadline := now.Add(10 * time.Second); times[boot.KubeletRegistered].IsZero(); {
		if time.Now().After(deadline) {
			t.Fatalf("the journal shows %v", times)
		}
		times, _ = agent.Journal(h.realPath(journalDirectory))(b.Registers)
	}
	if len(times) != 16 { // without the containers of the network plugin and kube-proxy
		t.Errorf("before the node is ready the journal shows %v", times)
	}
	cancel()
	<-done
	b.Ready = now.Add(50 * time.Millisecond)
	h.keepJournal(t.Context(), b)
	if times, err := agent.Journal(h.realPath(journalDirectory))(b.Registers); err != nil || len(times) != 19 {
		t.Errorf("the journal shows %v: %v", times, err)
	}
}

// TestFindJournal fails if the journal's directory is not read from the arguments of a pod of
// croft's agent, or if another pod is not refused.
func TestFindJournal(t *testing.T) {
	for args, want := range map[[3]string]string{
		{"agent", "--node=$(NODE_NAME)", "--journal=/var/log/journal"}: "/var/log/journal", {"agent", "--node=$(NODE_NAME)"}: "",
		{"operator"}: "refused", {}: "refused", {"agent", "--fly"}: "refused",
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Args: slices.DeleteFunc(args[:], func(s string) bool { return s == "" })}}}}
		got, err := findJournal(pod)
		if err != nil {
			got = "refused"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", args, got, want)
		}
	}
}
