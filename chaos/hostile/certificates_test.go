package hostile

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/pki"
	"github.com/quorate/quorate/internal/verify"
)

// shortSpan is how long the first certificates are valid: long enough to start three servers on a busy machine.
const shortSpan = 45 * time.Second

// TestCertificatesAreRenewedUnderTraffic follows both procedures of "Rotate certificates and keys" in
// docs/operations.md during reads and writes at every server: it renews certificates that expire soon, then replaces
// the authority. After either, all earlier connections are closed, and after the first certificates have expired,
// calls still succeed.
func TestCertificatesAreRenewedUnderTraffic(t *testing.T) {
	verify.Only(t) // waits until certificates end
	t.Parallel()
	c := startCluster(t, clusterOptions{encrypted: true})
	c.applyTree(t, 100)
	ends := time.Now().Add(shortSpan)
	for _, n := range c.nodes {
		n.Kill()
		c.replaceCertificate(t, n.ID, c.certs, shortSpan)
	}
	for _, n := range c.nodes {
		n.Start(t)
	}
	c.awaitReady(t)
	traffic := c.startTraffic(t)
	traffic.awaitEach(t, 3)

	before := c.openConnections(t)
	for _, n := range c.nodes {
		c.replaceCertificate(t, n.ID, c.certs, time.Hour)
		n.Signal(t, syscall.SIGHUP)
	}
	c.awaitGone(t, before, "the certificates of all nodes were renewed")

	before = c.openConnections(t)
	c.replaceAuthority(t, traffic)
	c.awaitGone(t, before, "the authority was replaced")

	time.Sleep(time.Until(ends.Add(time.Second)))
	traffic.awaitEach(t, 3)
	traffic.stopCalls(t)
	for _, n := range c.nodes {
		if !c.isReady(t, n) {
			_, why := c.httpGet(t, n, "/readyz")
			t.Errorf("%s is not ready: %s", n.ID, why)
		}
	}
}

// TestExpiredCertificateIsReported: a follower whose certificate has expired reports that in /readyz and in its log,
// and serves again as soon as there is a new one.
func TestExpiredCertificateIsReported(t *testing.T) {
	verify.Only(t) // waits until a certificate ends
	t.Parallel()
	c := startCluster(t, clusterOptions{encrypted: true})
	_, follower := c.findLeader(t)
	ends := time.Now().Add(shortSpan / 2)
	follower.Kill()
	c.replaceCertificate(t, follower.ID, c.certs, shortSpan/2)
	follower.Start(t)
	c.awaitReady(t)
	time.Sleep(time.Until(ends))
	waitFor(t, "it is ready with an expired certificate", func() bool { return !c.isReady(t, follower) })
	waitFor(t, "the log does not say that the certificate has ended", func() bool {
		return strings.Contains(follower.Stderr.String(), "a certificate has ended, others refuse it")
	})
	c.replaceCertificate(t, follower.ID, c.certs, time.Hour)
	follower.Signal(t, syscall.SIGHUP)
	c.awaitReady(t)
}

func (c *cluster) replaceCertificate(t *testing.T, id string, from pki.Folder, span time.Duration) {
	t.Helper()
	authority, err := from.Authority()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Node(id, []string{"localhost", "127.0.0.1"}, span)
	if err != nil {
		t.Fatal(err)
	}
	replaceFile(t, c.certs.Key(id), pair.Key)
	replaceFile(t, c.certs.Cert(id), pair.Cert)
}

func replaceFile(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path+".next", text, 0o600), os.Rename(path+".next", path)); err != nil {
		t.Fatal(err)
	}
}

// replaceAuthority replaces the authority in three steps. After each of them all clients must succeed.
func (c *cluster) replaceAuthority(t *testing.T, traffic *backgroundCalls) {
	t.Helper()
	next := pki.Folder(filepath.Join(t.TempDir(), "next"))
	if end := runCommand(t, "tls", "create", string(next), "--nodes", "n1,n2,n3"); end.code != 0 {
		t.Fatalf("%+v", end)
	}
	earlier, later := readFile(t, c.certs.CA()), readFile(t, next.CA())
	steps := []func(){
		func() { replaceFile(t, c.certs.CA(), slices.Concat(earlier, later)) },
		func() {
			for _, n := range c.nodes {
				c.replaceCertificate(t, n.ID, next, time.Hour)
			}
			replaceFile(t, c.certs.Key("client"), readFile(t, next.Key("client")))
			replaceFile(t, c.certs.Cert("client"), readFile(t, next.Cert("client")))
		},
		func() { replaceFile(t, c.certs.CA(), later) },
	}
	for _, step := range steps {
		step()
		for _, n := range c.nodes {
			n.reloadCertificates(t)
		}
		traffic.awaitEach(t, 3)
	}
}

func (n *node) reloadCertificates(t *testing.T) {
	t.Helper()
	before := n.countReloads()
	n.Signal(t, syscall.SIGHUP)
	waitFor(t, n.ID+" does not read its certificates again", func() bool { return n.countReloads() > before })
}

func (n *node) countReloads() int { return strings.Count(n.Stderr.String(), "certificates read again") }

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// openConnections returns the connections between servers to the ports for clients and for raft, by both addresses.
func (c *cluster) openConnections(t *testing.T) map[string]bool {
	t.Helper()
	ports := map[string]bool{}
	for _, n := range c.nodes {
		for _, address := range []string{n.HTTP, n.Raft} {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				t.Fatal(err)
			}
			number, err := strconv.Atoi(port)
			if err != nil {
				t.Fatal(err)
			}
			ports[fmt.Sprintf("%04X", number)] = true
		}
	}
	const established = "01"
	own, found := ownSockets(t), map[string]bool{}
	for line := range strings.Lines(string(readFile(t, "/proc/net/tcp"))) {
		fields := strings.Fields(line)
		if len(fields) < 10 || fields[3] != established || own[fields[9]] {
			continue
		}
		if _, port, _ := strings.Cut(fields[2], ":"); ports[port] {
			found[fields[1]+" to "+fields[2]] = true
		}
	}
	return found
}

func ownSockets(t *testing.T) map[string]bool {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]bool{}
	for _, file := range files {
		target, err := os.Readlink(filepath.Join("/proc/self/fd", file.Name()))
		if err != nil {
			continue // it was closed meanwhile
		}
		if inode, found := strings.CutPrefix(target, "socket:["); found {
			own[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return own
}

// awaitGone waits until all earlier connections are closed.
func (c *cluster) awaitGone(t *testing.T, before map[string]bool, since string) {
	t.Helper()
	if len(before) < 4 {
		t.Fatalf("three nodes have only %d connections", len(before))
	}
	waitFor(t, "connections stay open after "+since, func() bool {
		now := c.openConnections(t)
		for connection := range before {
			if now[connection] {
				return false
			}
		}
		return true
	})
}
