package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Component is how a component of a sandbox is.
type Component struct {
	Name  string `json:"component"`
	State string `json:"state"`
	PID   int    `json:"pid"`
	// Address is where it listens.
	Address string        `json:"address"`
	Took    time.Duration `json:"tookNanoseconds"`
}

// Component tells how a component is.
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

// Kill ends a component as a crash would, with SIGKILL, and returns when that is
// noticed. It is started again at once; Start waits until it is ready. For it to
// stay away, use Stop.
func (c *Cluster) Kill(name string) error {
	killed, err := c.Component(name)
	if err != nil {
		return err
	}
	if err := c.do("kill", name); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(context.Background(), 20*time.Millisecond, downTimeout, true,
		func(context.Context) (bool, error) {
			now, err := c.Component(name)
			return now.PID != killed.PID, err
		})
}
