package addons_test

import (
	"slices"
	"strings"
	"testing"

	"croft.dev/croft/internal/declare/addons"
	"croft.dev/croft/internal/declare/addons/addonstest"
)

// refusing are the classes that refuse any value.
var refusing = []string{string(addons.Address), string(addons.Rights), string(addons.Never)}

// TestEveryFormOfPrefix fails if a prefix whose annotations are refused is allowed as a key
// without a slash, or with the name of a pod or a container after the slash: NRI's plugins
// read all of these.
func TestEveryFormOfPrefix(t *testing.T) {
	for _, a := range addons.All() {
		if !slices.Contains(refusing, string(a.DefaultClass)) {
			continue
		}
		table := addons.BuildTable(a.Kinds)
		for _, prefix := range a.Prefixes {
			forms := []string{prefix}
			if domain, below := strings.CutPrefix(prefix, "*."); below {
				forms = []string{domain, "new." + domain, "field.new." + domain}
			}
			for _, form := range forms {
				for _, key := range []string{form, form + "/pod", form + "/container.app", form + "/app", form + "/of-next-release"} {
					if class := addonstest.FindClass(table, key); !slices.Contains(refusing, class) {
						t.Errorf("%s: %s is %s, and %s is %s", a.Name, prefix, a.DefaultClass, key, class)
					}
				}
			}
		}
	}
}

// TestKeysOfAddons looks up keys that add-ons build from parts, as in their source code.
func TestKeysOfAddons(t *testing.T) {
	for key, want := range map[string]addons.Class{
		// NRI's device-injector and its siblings: alone, for a pod, and for a container.
		"devices.nri.io":                                     addons.Never,
		"mounts.nri.io":                                      addons.Never,
		"cdi-devices.nri.io":                                 addons.Never,
		"devices.noderesource.dev":                           addons.Never,
		"mounts.noderesource.dev":                            addons.Never,
		"mounts.noderesource.dev/container.app":              addons.Never,
		"cdi-devices.noderesource.dev/pod":                   addons.Never,
		"io-priority.noderesource.dev":                       addons.Never,
		"io-priority.nri.io/container.app":                   addons.Never,
		"scheduling-policy.nri.io":                           addons.Never,
		"sysctl.noderesource.dev/pod":                        addons.Never,
		"netdevice.noderesource.dev/pod":                     addons.Never,
		"netdevices.nri.containerd.io/pod":                   addons.Never,
		"ulimits.noderesource.dev/container.app":             addons.Never,
		"ulimits.nri.containerd.io":                          addons.Never,
		"writable-cgroups.noderesource.dev":                  addons.Never,
		"l3CacheSchema.rdt.noderesource.dev/container.app":   addons.Never,
		"memory.high.memory-qos.nri.io/app":                  addons.Never,
		"class.memtierd.nri.io":                              addons.Never,
		"policy.memory-policy.nri.io/container.app":          addons.Never,
		"balloon.balloons.resource-policy.nri.io":            addons.Never,
		"require-isolated-cpus.resource-policy.nri.io/pod":   addons.Never,
		"epc-limit.nri.io/container.app":                     addons.Never,
		"rdt.resources.beta.kubernetes.io/container.app":     addons.Never,
		"blockio.resources.beta.kubernetes.io/pod":           addons.Never,
		"cdi.k8s.io/gpu":                                     addons.Never,
		"nvidia.cdi.k8s.io/gpu":                              addons.Never,
		"org.criu.config":                                    addons.Never,
		"io.kubernetes.cri-o.UnifiedCgroup/app":              addons.Never,
		"io.kubernetes.cri-o/Devices":                        addons.Never,
		"seccomp-profile.kubernetes.cri-o.io/app":            addons.Never,
		"skip-gomaxprocs.crio.io":                            addons.Never,
		"stop-signal-of-next-release.crio.io/app":            addons.Never,
		"service-discovery.datadoghq.com/app.check_names":    addons.Rights,
		"ad.datadoghq.com/app.checks":                        addons.Rights,
		"ad.datadoghq.com/app.check.id":                      addons.Rights,
		"ad.datadoghq.com/app.logs_exclude":                  addons.Harmless,
		"co.elastic.logs.sidecar/raw":                        addons.Rights,
		"co.elastic.logs.sidecar/enabled":                    addons.Harmless,
		"co.elastic.logs.sidecar/multiline.pattern":          addons.Harmless,
		"co.elastic.metrics.sidecar/hosts":                   addons.Rights,
		"co.elastic.metrics.sidecar/1.hosts":                 addons.Rights,
		"danm.io/interfaces":                                 addons.Address,
		"danm.k8s.io/interfaces":                             addons.Address,
		"opflex.cisco.com/endpoint-group":                    addons.Rights,
		"iam.amazonaws.com/role":                             addons.Rights,
		"devices.of-next-plugin.io":                          addons.Unknown,
		"note":                                               addons.Harmless,
		"build.url.of":                                       addons.Harmless,
		"com.example.team":                                   addons.Harmless,
		"prometheus.io":                                      addons.Harmless,
		"example.net/act":                                    addons.Unknown,
		"virtual.internal.external-dns.example.org/hostname": addons.Hosts,
	} {
		got, _, _ := strings.Cut(addonstest.FindClass(addons.BuildTable(addons.Pods), key), ":")
		if got != string(want) {
			t.Errorf("%s is %s on pods, want %s", key, got, want)
		}
	}
}
