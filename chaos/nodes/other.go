//go:build !linux

package nodes

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"syscall"
)

// errNotHere is why faults of the network and of disks are left out on this system.
var errNotHere = errors.New("they need Linux")

// network exists only on Linux.
type network struct{ fabric *fabric }

func newNetwork(int, uint64) (*network, error)    { return nil, errNotHere }
func (*network) open(int, string) (string, error) { return "", errNotHere }
func (*network) place(int) error                  { return errNotHere }
func (*network) dial(context.Context, int, string, string) (net.Conn, error) {
	return nil, errNotHere
}
func (*network) close() error { return nil }

func newDisk(below string) (*Disk, []string, error) {
	d, err := plainDisk(below)
	return d, []string{"faults of disks (they need Linux)"}, err
}

func sweep() error { return nil }

// start starts a process in a group of its own. Here it outlives a crash of this one.
func start(cmd *exec.Cmd, _ func() error) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd.Start()
}
