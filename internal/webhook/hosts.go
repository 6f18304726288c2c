package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// MaxHosts is the largest number of rules.
const MaxHosts = 100

// Hosts says to which hosts events may be delivered; the zero value allows none.
type Hosts []hostRule

type hostRule struct {
	scheme, host, port string
	// address is set if the host is an address. Only such a rule allows addresses of the own machine and of the link.
	address netip.Addr
}

// ParseHosts reads rules of the form [http://|https://]HOST[:PORT]. Without a scheme a rule is for https, without a
// port for the standard one, and with the port * for every port. A host that begins with *. stands for all names below.
func ParseHosts(list []string) (Hosts, error) {
	if len(list) > MaxHosts {
		return nil, fmt.Errorf("there are %d hosts; at most %d are allowed", len(list), MaxHosts)
	}
	var hosts Hosts
	for _, text := range list {
		rule, err := parseHost(text)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		hosts = append(hosts, rule)
	}
	return hosts, nil
}

func parseHost(text string) (hostRule, error) {
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		scheme, rest = "https", text
	}
	if scheme != "https" && scheme != "http" {
		return hostRule{}, errors.New("the scheme must be https or http")
	}
	rule := hostRule{scheme: scheme, host: rest, port: standardPort(scheme)}
	if host, port, err := net.SplitHostPort(rest); err == nil {
		rule.host, rule.port = host, port
	}
	rule.host = strings.ToLower(strings.Trim(rule.host, "[]"))
	if rule.host == "" || rule.port == "" || strings.ContainsAny(rule.host, "/?#@ ") {
		return hostRule{}, errors.New("write HOST, HOST:PORT or http://HOST:PORT")
	}
	if address, err := netip.ParseAddr(rule.host); err == nil {
		rule.address = address.Unmap()
	}
	return rule, nil
}

func standardPort(scheme string) string {
	if scheme == "http" {
		return "80"
	}
	return "443"
}

// Check refuses an address that is not allowed. The text says why.
func (h Hosts) Check(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return errors.New("the URL must be https://HOST/PATH, without a user and without a fragment")
	}
	if len(h) == 0 {
		return errors.New("this server delivers to no host: name some in its setting webhook-hosts")
	}
	port := u.Port()
	if port == "" {
		port = standardPort(u.Scheme)
	}
	host := strings.ToLower(u.Hostname())
	for _, rule := range h {
		if rule.scheme == u.Scheme && (rule.port == port || rule.port == "*") && rule.matchesHost(host) {
			return nil
		}
	}
	return fmt.Errorf("the setting webhook-hosts of this server does not allow %s://%s", u.Scheme,
		net.JoinHostPort(host, port))
}

func (r hostRule) matchesHost(host string) bool {
	if below, isPattern := strings.CutPrefix(r.host, "*"); isPattern {
		return strings.HasSuffix(host, below) && len(host) > len(below)
	}
	return r.host == host
}

// dialTimeout bounds the time to connect.
const dialTimeout = 5 * time.Second

// dial connects, and refuses addresses that no rule may mean. It checks the address that the name was resolved to when
// the connection is made: a name that is resolved again for the connection could mean another machine by then.
func (h Hosts) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{
		Timeout: dialTimeout,
		ControlContext: func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
			return h.checkAddress(host, resolved)
		},
	}
	return dialer.DialContext(ctx, network, address)
}

// checkAddress refuses addresses of the own machine, of the link and of groups, unless the host of the URL is this
// address and a rule names it.
func (h Hosts) checkAddress(host, resolved string) error {
	at, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return fmt.Errorf("%q is not an address: %w", resolved, err)
	}
	ip := at.Addr().Unmap().WithZone("")
	if !ip.IsLoopback() && !ip.IsLinkLocalUnicast() && !ip.IsMulticast() && !ip.IsUnspecified() {
		return nil
	}
	literal, err := netip.ParseAddr(host)
	isNamed := func(rule hostRule) bool { return rule.address == ip }
	if err == nil && literal.Unmap() == ip && slices.ContainsFunc(h, isNamed) {
		return nil
	}
	return fmt.Errorf("the host has the address %s: a URL with exactly this address, and a rule of webhook-hosts for it, "+
		"would be needed", ip)
}
