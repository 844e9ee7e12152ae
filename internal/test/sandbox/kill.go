package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Component is the state of a component of a sandbox.
type Component struct {
	Name  string `json:"component"`
	State string `json:"state"`
	PID   int    `json:"pid"`
	// Address is the address at which it listens.
	Address string        `json:"address"`
	Took    time.Duration `json:"tookNanoseconds"`
}

// Component returns the state of a component.
func (c *Cluster) Component(name string) (Component, error) {
	out, err := c.run(context.Background(), "status", "-o", "json")
	if err != nil {
		return Component{}, err
	}
	var all []Component
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		return Component{}, err
	}
	for _, component := range all {
		if component.Name == name {
			return component, nil
		}
	}
	return Component{}, fmt.Errorf("the sandbox has no component %q", name)
}

// Kill ends a component with SIGKILL, as in a crash, and returns when the sandbox has observed
// it. The sandbox restarts it at once; Start waits until it is ready. To keep it down, use
// Stop.
func (c *Cluster) Kill(name string) error {
	killed, err := c.Component(name)
	if err != nil {
		return err
	}
	if err := c.controlComponent("kill", name); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(context.Background(), 20*time.Millisecond, downTimeout, true,
		func(context.Context) (bool, error) {
			now, err := c.Component(name)
			return now.PID != killed.PID, err
		})
}
