//go:build !linux

package agent

import "errors"

// ThisMachine is an error: only nodes that run Linux have secondary networks.
func ThisMachine() (Machine, error) {
	return nil, errors.New("croft agent runs on nodes with Linux only")
}
