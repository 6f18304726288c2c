package nodes

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// deviceName is the name of the interface in each namespace; mtu is its largest packet.
const (
	deviceName = "chaos0"
	mtu        = 1500
)

// newTUN creates an interface with an address in the namespace, in a network of 254 addresses. The file reads what is
// sent to other addresses of that network, and what is written to it arrives in the namespace.
func newTUN(n *namespace, address netip.Addr) (*os.File, error) {
	var file *os.File
	err := n.runInside(func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			return fmt.Errorf("open /dev/net/tun: %w", err)
		}
		if err := configureTUN(fd, address); err != nil {
			return fmt.Errorf("set up the interface of %s: %w", address, closeAfter(fd, err))
		}
		file = os.NewFile(uintptr(fd), deviceName)
		return nil
	})
	return file, err
}

// closeAfter closes a descriptor after an error.
func closeAfter(fd int, err error) error { return errors.Join(err, unix.Close(fd)) }

// configureTUN creates the interface and enables it and the loopback interface of the current namespace.
func configureTUN(tun int, address netip.Addr) error {
	request, err := unix.NewIfreq(deviceName)
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(tun, unix.TUNSETIFF, request); err != nil {
		return fmt.Errorf("make it: %w", err)
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket) //nolint:errcheck // it was only needed to ask
	for _, step := range []struct {
		ask   uint
		value [4]byte
	}{{unix.SIOCSIFADDR, address.As4()}, {unix.SIOCSIFNETMASK, [4]byte{255, 255, 255, 0}}} {
		if err := request.SetInet4Addr(step.value[:]); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(socket, step.ask, request); err != nil {
			return fmt.Errorf("address it: %w", err)
		}
	}
	for _, name := range []string{deviceName, "lo"} {
		if err := setInterfaceUp(socket, name); err != nil {
			return fmt.Errorf("switch %s on: %w", name, err)
		}
	}
	return nil
}

func setInterfaceUp(socket int, name string) error {
	request, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(socket, unix.SIOCGIFFLAGS, request); err != nil {
		return err
	}
	request.SetUint16(request.Uint16() | unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
}
