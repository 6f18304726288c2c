package hostile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/pki"
)

// shortSpan is how long the first certificates of nodes last: long enough to start three servers on a busy machine.
const shortSpan = 45 * time.Second

// TestCertificatesAreRenewedUnderTraffic plays both ways of "Rotate certificates and keys" in docs/operations.md, under
// reads and writes at every server: certificates that end soon are renewed, and then the authority is replaced. After
// either, no connection of before is left, and when the first certificates have ended, everything still goes on.
func TestCertificatesAreRenewedUnderTraffic(t *testing.T) {
	verify.Only(t) // waits until certificates end
	c := startCluster(t, options{encrypted: true})
	c.applyTree(t, 100)
	ends := time.Now().Add(shortSpan)
	for _, n := range c.nodes {
		n.kill(t)
		c.certify(t, n.id, c.certs, shortSpan)
	}
	for _, n := range c.nodes {
		n.start(t)
	}
	c.awaitReady(t)
	traffic := c.startTraffic(t)
	traffic.awaitEach(t, 3)

	before := c.connections(t)
	for _, n := range c.nodes {
		c.certify(t, n.id, c.certs, time.Hour)
		n.signal(t, syscall.SIGHUP)
	}
	c.awaitGone(t, before, "the certificates of all nodes were renewed")

	before = c.connections(t)
	c.replaceAuthority(t, traffic)
	c.awaitGone(t, before, "the authority was replaced")

	time.Sleep(time.Until(ends.Add(time.Second)))
	traffic.awaitEach(t, 3)
	traffic.stop(t)
	for _, n := range c.nodes {
		if !c.ready(t, n) {
			_, why := c.get(t, n, "/readyz")
			t.Errorf("%s is not ready: %s", n.id, why)
		}
	}
}

// TestAnEndedCertificateShows: a follower whose certificate has ended says so in /readyz and in its log, and serves again
// by itself once there is another one.
func TestAnEndedCertificateShows(t *testing.T) {
	verify.Only(t) // waits until a certificate ends
	c := startCluster(t, options{encrypted: true})
	_, follower := c.leader(t)
	ends := time.Now().Add(shortSpan / 2)
	follower.kill(t)
	c.certify(t, follower.id, c.certs, shortSpan/2)
	follower.start(t)
	c.awaitReady(t)
	time.Sleep(time.Until(ends))
	await(t, "it is ready with a certificate that nobody believes", func() bool { return !c.ready(t, follower) })
	await(t, "the log does not say that the certificate has ended", func() bool {
		return strings.Contains(follower.stderr.String(), "a certificate has ended, others refuse it")
	})
	c.certify(t, follower.id, c.certs, time.Hour)
	follower.signal(t, syscall.SIGHUP)
	c.awaitReady(t)
}

// certify gives a node of the cluster a new certificate of an authority, in the place of the one that it had.
func (c *cluster) certify(t *testing.T, id string, from pki.Folder, span time.Duration) {
	t.Helper()
	authority, err := from.Authority()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Node(id, []string{"localhost", "127.0.0.1"}, span)
	if err != nil {
		t.Fatal(err)
	}
	replace(t, c.certs.Key(id), pair.Key)
	replace(t, c.certs.Cert(id), pair.Cert)
}

// replace puts another content into the place of a file, all of it at once.
func replace(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path+".next", text, 0o600), os.Rename(path+".next", path)); err != nil {
		t.Fatal(err)
	}
}

// replaceAuthority does it in three steps, each of which is seen to work by all callers before the next.
func (c *cluster) replaceAuthority(t *testing.T, traffic *traffic) {
	t.Helper()
	next := pki.Folder(filepath.Join(t.TempDir(), "next"))
	if end := run(t, "tls", "init", string(next), "--nodes", "n1,n2,n3"); end.code != 0 {
		t.Fatalf("%+v", end)
	}
	earlier, later := content(t, c.certs.CA()), content(t, next.CA())
	steps := []func(){
		func() { replace(t, c.certs.CA(), slices.Concat(earlier, later)) },
		func() {
			for _, n := range c.nodes {
				c.certify(t, n.id, next, time.Hour)
			}
			replace(t, c.certs.Key("client"), content(t, next.Key("client")))
			replace(t, c.certs.Cert("client"), content(t, next.Cert("client")))
		},
		func() { replace(t, c.certs.CA(), later) },
	}
	for _, step := range steps {
		step()
		for _, n := range c.nodes {
			n.reload(t)
		}
		traffic.awaitEach(t, 3)
	}
}

// reload makes a server take what its certificate files hold.
func (n *node) reload(t *testing.T) {
	t.Helper()
	before := n.reloads()
	n.signal(t, syscall.SIGHUP)
	await(t, n.id+" does not read its certificates again", func() bool { return n.reloads() > before })
}

// reloads counts how often a server has taken new certificates.
func (n *node) reloads() int { return strings.Count(n.stderr.String(), "certificates read again") }

func content(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// connections are those of servers to the ports for clients and for raft that are established now, by both of their
// addresses.
func (c *cluster) connections(t *testing.T) map[string]bool {
	t.Helper()
	ports := map[string]bool{}
	for _, n := range c.nodes {
		for _, address := range []string{n.http, n.raft} {
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
	for line := range strings.Lines(string(content(t, "/proc/net/tcp"))) {
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

// ownSockets are the inodes of those of this process.
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
		if inode, is := strings.CutPrefix(target, "socket:["); is {
			own[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return own
}

// awaitGone waits until no connection of an earlier moment is left.
func (c *cluster) awaitGone(t *testing.T, before map[string]bool, since string) {
	t.Helper()
	if len(before) < 4 {
		t.Fatalf("three nodes have only %d connections", len(before))
	}
	await(t, "connections stay open after "+since, func() bool {
		now := c.connections(t)
		for connection := range before {
			if now[connection] {
				return false
			}
		}
		return true
	})
}

// retrySpan is for how long a caller repeats what fails: a server has found another way by then.
const retrySpan = 15 * time.Second

// traffic is one caller for each server, who reads and writes there without a pause, with what the files of the client hold
// at that moment.
type traffic struct {
	end     context.CancelFunc
	callers sync.WaitGroup

	mu      sync.Mutex
	rounds  map[string]int
	repeats int
	failed  error
}

func (c *cluster) startTraffic(t *testing.T) *traffic {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	traffic := &traffic{end: cancel, rounds: map[string]int{}}
	for _, n := range c.nodes {
		traffic.callers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				err := traffic.insist(ctx, func(ctx context.Context) error { return c.readAndWrite(ctx, n, fmt.Sprintf("%s-%d", n.id, i)) })
				traffic.note(n.id, err)
				time.Sleep(50 * time.Millisecond)
			}
		})
	}
	t.Cleanup(func() { cancel(); traffic.callers.Wait() })
	return traffic
}

// readAndWrite makes a linearizable read and a write at one server, over connections of their own.
func (c *cluster) readAndWrite(ctx context.Context, n *node, id string) error {
	files := pki.Files{CA: c.certs.CA(), Cert: c.certs.Cert("client"), Key: c.certs.Key("client")}
	config, err := pki.ClientConfig(files, "localhost")
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DisableKeepAlives: true}}
	trees := quoratev1connect.NewTreeServiceClient(client, c.url(n))
	if _, err := trees.GetUsage(ctx, &quoratev1.GetUsageRequest{Tree: "t"}); err != nil {
		return fmt.Errorf("read at %s: %w", n.id, err)
	}
	if err := pair(ctx, quoratev1connect.NewAllocationServiceClient(client, c.url(n)), id); err != nil {
		return fmt.Errorf("write at %s: %w", n.id, err)
	}
	return nil
}

// insist repeats an attempt that fails, for a while.
func (f *traffic) insist(ctx context.Context, attempt func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, retrySpan)
	defer cancel()
	for {
		err := attempt(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if connect.CodeOf(err) == connect.CodeFailedPrecondition {
			return err
		}
		f.mu.Lock()
		f.repeats++
		f.mu.Unlock()
		time.Sleep(50 * time.Millisecond)
	}
}

func (f *traffic) note(id string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rounds[id]++
	if err != nil && f.failed == nil && !errors.Is(err, context.Canceled) && connect.CodeOf(err) != connect.CodeCanceled {
		f.failed = fmt.Errorf("round %d of %s failed for %v: %w", f.rounds[id], id, retrySpan, err)
	}
}

// awaitEach waits until the caller of each server has carried out so many rounds more.
func (f *traffic) awaitEach(t *testing.T, more int) {
	t.Helper()
	begun, _ := f.state()
	await(t, "the callers do not go on", func() bool {
		now, failed := f.state()
		if failed != nil {
			t.Fatal(failed)
		}
		for _, id := range []string{"n1", "n2", "n3"} {
			if now[id] < begun[id]+more {
				return false
			}
		}
		return true
	})
}

func (f *traffic) state() (rounds map[string]int, failed error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.rounds), f.failed
}

// stop ends the callers, none of whom may have failed for long.
func (f *traffic) stop(t *testing.T) {
	t.Helper()
	f.end()
	f.callers.Wait()
	if f.failed != nil {
		t.Error(f.failed)
	}
	t.Logf("%v rounds of a read and a write, %d attempts were repeated", f.rounds, f.repeats)
}
