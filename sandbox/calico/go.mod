// Calico's own evaluation of its selectors, with which a test compares croft's. It is a
// module of its own, because Calico's module pins the versions of half of Kubernetes.
module croft.dev/croft/sandbox/calico

go 1.26.6

require github.com/projectcalico/calico v1.11.0-cni-plugin.0.20250813170300-a0db560f0520

require (
	github.com/sirupsen/logrus v1.9.3 // indirect
	golang.org/x/sys v0.33.0 // indirect
)
