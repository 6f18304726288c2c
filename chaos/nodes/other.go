//go:build !linux

package nodes

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"syscall"
)

// errNotHere says why there are no faults of the network and of disks on this system.
var errNotHere = errors.New("they need Linux")

// network exists only on Linux.
type network struct{ packets *packetSwitch }

func newNetwork(int, uint64) (*network, error) { return nil, errNotHere }

func (*network) openForwarder(int, func() string) (string, error) { return "", errNotHere }

func (*network) listenInside(string) ([]net.Listener, error) { return nil, errNotHere }

func (*network) enterNamespace(int) error { return errNotHere }

func (*network) dialNode(context.Context, int, string, string) (net.Conn, error) {
	return nil, errNotHere
}

func (*network) shutDown() error { return nil }

func newDisk(below string) (*Disk, []string, error) {
	d, err := plainDisk(below)
	return d, []string{"faults of disks (they need Linux)"}, err
}

func unmountOrphans() error { return nil }

// startProcess starts a process in its own process group. On these systems it outlives a crash of the harness.
func startProcess(cmd *exec.Cmd, _ func() error) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd.Start()
}
