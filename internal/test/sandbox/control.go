package sandbox

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Stop stops a component and returns when it has ended. The others keep running.
func (c *Cluster) Stop(component string) error {
	return c.controlComponent("stop", component)
}

// Start starts a stopped component and returns when it is ready.
func (c *Cluster) Start(component string) error {
	return c.controlComponent("start", component)
}

// Freeze suspends a component's process until Thaw.
func (c *Cluster) Freeze(component string) error { return c.controlComponent("freeze", component) }

// Cut disconnects an API server from etcd until Thaw.
func (c *Cluster) Cut(server string) error { return c.controlComponent("cut", server) }

// Thaw resumes a suspended component, and reconnects a disconnected API server.
func (c *Cluster) Thaw(component string) error { return c.controlComponent("thaw", component) }

func (c *Cluster) controlComponent(command, component string) error {
	_, err := c.run(context.Background(), command, component)
	return err
}

// ConfigAt returns the administrator's client configuration for one of several API servers.
func (c *Cluster) ConfigAt(server string) (*rest.Config, error) {
	return c.readConfig("--server", server)
}

// WriteKubeconfigAt writes the administrator's kubeconfig for one of several API servers into the
// sandbox's directory, and returns its path.
func (c *Cluster) WriteKubeconfigAt(server string) (string, error) {
	kubeconfig, err := c.run(context.Background(), "kubeconfig", "--server", server)
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.Dir, server+".kubeconfig")
	return path, os.WriteFile(path, []byte(kubeconfig), 0o600)
}

// ConfigFor returns a client configuration of another user: the sandbox's CA signs the name and
// the groups.
func (c *Cluster) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	return c.readConfig(listUserArgs(user, groups)...)
}

// WriteKubeconfigFor writes a kubeconfig of another user, as ConfigFor, into the sandbox's directory, and returns its
// path.
func (c *Cluster) WriteKubeconfigFor(user string, groups ...string) (string, error) {
	kubeconfig, err := c.run(context.Background(), append([]string{"kubeconfig"}, listUserArgs(user, groups)...)...)
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.Dir, strings.ReplaceAll(user, ":", "-")+".kubeconfig")
	return path, os.WriteFile(path, []byte(kubeconfig), 0o600)
}

func listUserArgs(user string, groups []string) []string {
	args := []string{"--user", user}
	for _, group := range groups {
		args = append(args, "--group", group)
	}
	return args
}

// readConfig returns a client configuration that croft-sandbox writes.
func (c *Cluster) readConfig(args ...string) (*rest.Config, error) {
	kubeconfig, err := c.run(context.Background(), append([]string{"kubeconfig"}, args...)...)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(kubeconfig))
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = qps, burst
	return config, nil
}
