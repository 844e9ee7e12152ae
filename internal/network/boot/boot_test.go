package boot_test

import (
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"croft.dev/croft/internal/network/boot"
)

// readEvents finds the events in a file of testdata.
func readEvents(t *testing.T, name string, near, created time.Time) boot.Times {
	t.Helper()
	file, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var log boot.Log
	if _, err := log.Read(file, near); err != nil {
		t.Fatal(err)
	}
	return log.Boot(created)
}

// TestSystems expects the events of each system's logs, as times of day.
func TestSystems(t *testing.T) {
	for name, c := range map[string]struct {
		day  string
		want map[boot.Event]string
	}{
		"al2.messages": {"2022-11-28", map[boot.Event]string{
			boot.VMInitialized: "02:59:07", boot.NetworkStart: "02:59:10", boot.NetworkReady: "02:59:10",
			boot.CloudInitInitialStart: "02:59:10", boot.CloudInitConfigStart: "02:59:11",
			boot.CloudInitFinalStart: "02:59:11", boot.CloudInitFinalFinish: "02:59:14",
			boot.ContainerdStart: "02:59:10", boot.ContainerdInitialized: "02:59:10", // before user data restarts it
			boot.KubeletStart: "02:59:14", boot.KubeletInitialized: "02:59:14", boot.KubeletRegistered: "02:59:15",
			boot.KubeProxyStart: "02:59:16", boot.VPCCNIInitStart: "02:59:16", boot.AWSNodeStart: "02:59:19",
		}},
		"al2023.journal.txt": {"2025-01-09", map[boot.Event]string{
			boot.VMInitialized: "19:57:58.104", boot.NetworkStart: "19:58:01.187", boot.NetworkReady: "19:58:02.7",
			boot.NodeadmConfigStart: "19:58:00.31", boot.NodeadmConfigFinish: "19:58:05.991",
			boot.CloudInitInitialStart: "19:58:06.411", boot.CloudInitConfigStart: "19:58:07.61",
			boot.CloudInitFinalStart: "19:58:08.18", boot.CloudInitFinalFinish: "19:58:30.4",
			boot.NodeadmRunStart: "19:58:30.512", boot.NodeadmRunFinish: "19:58:33.01",
			boot.ContainerdStart: "19:58:30.733", boot.ContainerdInitialized: "19:58:31.601",
			boot.KubeletStart: "19:58:32.902", boot.KubeletInitialized: "19:58:33.84",
			boot.KubeletRegistered: "19:58:34.42", boot.KubeProxyStart: "19:58:37", boot.VPCCNIInitStart: "19:58:37.211",
			boot.AWSNodeStart: "19:58:41.726",
		}},
		"bottlerocket.journal.txt": {"2024-10-17", map[boot.Event]string{
			boot.VMInitialized: "12:05:08", boot.NetworkStart: "12:05:12", boot.NetworkReady: "12:05:12",
			boot.BootstrapStart: "12:05:18", boot.BootstrapFinish: "12:05:29", // of the last container
			boot.ContainerdStart: "12:05:30", boot.ContainerdInitialized: "12:05:31", boot.KubeletStart: "12:05:32",
			boot.KubeletInitialized: "12:05:34", boot.KubeletRegistered: "12:05:35",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			day, err := time.Parse(time.DateOnly, c.day)
			if err != nil {
				t.Fatal(err)
			}
			got := map[boot.Event]string{}
			for e, at := range readEvents(t, name, day.AddDate(0, 1, 0), time.Time{}) {
				if at.Format(time.DateOnly) != c.day {
					t.Errorf("%s: on %s, not on %s", e, at, c.day)
				}
				got[e] = at.Truncate(time.Millisecond).Format("15:04:05.999")
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
		})
	}
}

// TestBoot expects the boot in which the node registered, among several boots.
func TestBoot(t *testing.T) {
	at := func(clock string) time.Time {
		parsed, err := time.Parse(time.RFC3339, "2026-11-23T"+clock+"Z")
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	var log boot.Log
	for _, l := range []struct{ clock, source, text string }{
		{"10:30:01", "systemd", "Starting Kubelet..."}, // second boot; lines come in any order
		{"10:30:00", "kernel", "Linux version 6.1"},
		{"09:00:00", "systemd", "Reached target Network."}, // the journal began before this boot
		{"10:00:00", "kernel", "Linux version 6.1"},
		{"10:00:05", "systemd", "Starting Kubelet..."},
		{"10:00:09", "systemd", "Starting Kubelet..."}, // a restart
		{"10:00:00", "systemd", "Reached target Network."},
	} {
		log.Add(boot.Line{Time: at(l.clock), Source: l.source, Text: l.text})
	}
	first := boot.Times{boot.VMInitialized: at("10:00:00"), boot.NetworkReady: at("10:00:00"),
		boot.KubeletStart: at("10:00:05")}
	second := boot.Times{boot.VMInitialized: at("10:30:00"), boot.KubeletStart: at("10:30:01")}
	for name, c := range map[string]struct {
		created time.Time
		want    boot.Times
	}{
		"registered in the first":               {at("10:00:07"), first},
		"the node's clock is ahead":             {at("09:59:58"), first},
		"registered in the second":              {at("10:30:03"), second},
		"registered at an unknown time":         {time.Time{}, second},
		"registered before the journal's boots": {at("09:10:00"), boot.Times{boot.NetworkReady: at("09:00:00")}},
	} {
		if got := log.Boot(c.created); !maps.EqualFunc(got, c.want, time.Time.Equal) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// formatCreated returns containerd's line about a container.
func formatCreated(container string) string {
	return "CreateContainer within sandbox x for &ContainerMetadata{Name:" + container + ",Attempt:0,} returns container id y"
}

// TestContainers covers both formats in which containerd writes a container's name.
func TestContainers(t *testing.T) {
	for _, text := range []string{
		formatCreated("aws-node"),
		`time="x" level=info msg="CreateContainer within sandbox \"a\" for &ContainerMetadata{Name:aws-node,Attempt:0,} ` +
			`returns container id \"b\""`,
		`time="x" level=info msg="CreateContainer within sandbox \"a\" for name:\"aws-node\" returns container id \"b\""`,
		`CreateContainer within sandbox "a" for name:"aws-node"  attempt:1 returns container id "b"`,
	} {
		var log boot.Log
		log.Add(boot.Line{Time: time.Unix(1, 0), Source: "containerd", Text: text})
		if got := log.Boot(time.Time{}); len(got) != 1 || got[boot.AWSNodeStart].IsZero() {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestBootIgnoresQuotedEvents expects no event for lines that only quote one.
func TestBootIgnoresQuotedEvents(t *testing.T) {
	for _, l := range []struct{ source, text string }{
		{"systemd", "Started kubelet"},
		{"systemd", "Started Kubelet Dashboard."},
		{"systemd", "Starting Kubernetes Kubelet Exporter..."},
		{"systemd", "Reached target Network is Online."},
		{"systemd", "Reached target Host and Network Name Lookups."},
		{"systemd", "Stopped containerd container runtime."},
		{"sudo", `"Started kubelet"`},
		{"audit", "Linux version 6.1"},
		{"kernel", "Command line: Linux version 6.1"},
		{"kernel", "Starting Kubelet..."},
		{"cloud-init", "+ echo Cloud-init v. 22.2.2 finished at"},
		{"cloud-init", "Cloud-init v. 22.2.2 running 'init-local' at Thu, 09 Jan 2025 19:58:01 +0000."},
		{"kubelet", formatCreated("aws-node")},
		{"containerd", formatCreated("web")},
		{"containerd", formatCreated("aws-node-exporter")},
		{"containerd", "CreateContainer within sandbox x returns container id y"},
		{"containerd", "CreateContainer within sandbox x for container &ContainerMetadata{Name:aws-node,Attempt:0,}"},
	} {
		var log boot.Log
		log.Add(boot.Line{Time: time.Unix(1, 0), Source: l.source, Text: l.text})
		if got := log.Boot(time.Time{}); len(got) > 0 {
			t.Errorf("%s: %s: %v", l.source, l.text, got)
		}
	}
}

// TestEncode expects Decode to accept Encode's result, and nothing else.
func TestEncode(t *testing.T) {
	at := time.Date(2026, 11, 23, 10, 0, 1, 234_567_890, time.FixedZone("CET", 3600))
	text := boot.Encode(boot.Times{boot.KubeletStart: at})
	if text != `{"Kubelet Start":"2026-11-23T09:00:01.234Z"}` {
		t.Errorf("written: %s", text)
	}
	all := boot.Times{}
	for _, e := range boot.Events() {
		all[e] = at
	}
	for text, want := range map[string]int{
		text: 1, boot.Encode(all): len(boot.Events()), "{}": 0, "null": 0,
		`{"Kubelet Start":"2026-11-23T09:00:01.234Z","Of A Newer Croft":"2026-11-23T09:00:01Z"}`: 1,
		`{"Kubelet Start":"0001-01-01T00:00:00Z"}`:                                               0,
	} {
		if got, err := boot.Decode(text); err != nil || len(got) != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "[]", `{"Kubelet Start":1}`, `{"Kubelet Start":"soon"}`,
		"{}" + strings.Repeat(" ", 2047)} {
		if got, err := boot.Decode(text); err == nil {
			t.Errorf("%.40s: no error, but %v", text, got)
		}
	}
}
