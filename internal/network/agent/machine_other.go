//go:build !linux

package agent

import "errors"

// ThisMachine returns an error: only nodes with Linux have secondary networks.
func ThisMachine() (Machine, error) {
	return nil, errors.New("croft agent runs on nodes with Linux only")
}
