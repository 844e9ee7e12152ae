package sandbox

import (
	"os"
	"os/exec"
	"sync"
)

// pipe stays open as long as this process runs. Nothing is ever written to it.
var pipe = sync.OnceValues(func() ([2]*os.File, error) {
	r, w, err := os.Pipe()
	return [2]*os.File{r, w}, err
})

// tieLifetime makes the sandbox that a command starts stop when this process ends. A test that panics
// or exceeds its time limit does not clean up, but the kernel closes its end of the pipe, from
// which the sandbox reads.
func tieLifetime(cmd *exec.Cmd) error {
	ends, err := pipe()
	if err != nil {
		return err
	}
	cmd.ExtraFiles = []*os.File{ends[0]}
	cmd.Env = append(os.Environ(), "CROFT_SANDBOX_LIFELINE=3")
	return nil
}
