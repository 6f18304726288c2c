package server

import (
	"crypto/tls"
	"fmt"
	"net"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/pflag"

	"github.com/quorate/quorate/internal/pki"
)

// Probe is how a process on the same machine asks a server for its health.
type Probe struct {
	// URL is the address of the API, without a path.
	URL string
	// TLS is nil for a server without certificates. It presents the certificate of the node, because the server may
	// require one, and verifies that the server is that node, because its certificate need not name a loopback address.
	TLS *tls.Config
}

// LoadProbe reads the settings of a server as [Load] does, and returns how to ask that server. Settings that have
// nothing to do with its API may be missing.
func LoadProbe(flags *pflag.FlagSet, environ []string) (Probe, error) {
	s, err := readSettings(flags, environ)
	if err != nil {
		return Probe{}, err
	}
	host, port, err := net.SplitHostPort(s.HTTPAddr)
	if err != nil {
		return Probe{}, fmt.Errorf("http-addr is %q: allowed is host:port", s.HTTPAddr)
	}
	address := net.JoinHostPort(dialableHost(host), port)
	files := s.tlsFiles()
	if files.Empty() {
		return Probe{URL: "http://" + address}, nil
	}
	if err := files.Complete(); err != nil {
		return Probe{}, err
	}
	store, err := pki.Open(files, s.ClusterName, s.ID, hclog.NewNullLogger())
	if err != nil {
		return Probe{}, fmt.Errorf("tls-cert: %w", err)
	}
	return Probe{URL: "https://" + address, TLS: store.Dial(s.ID)}, nil
}

// dialableHost is loopback for the hosts that stand for all addresses of a machine.
func dialableHost(host string) string {
	ip := net.ParseIP(host)
	switch {
	case host == "", ip != nil && ip.IsUnspecified() && ip.To4() != nil:
		return "127.0.0.1"
	case ip != nil && ip.IsUnspecified():
		return "::1"
	}
	return host
}
