package hostile

import (
	"context"
	varint "encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/verify"
)

// attackSpan is how long other clients are measured before and during an attack.
func attackSpan() time.Duration { return verify.Scale(time.Second, 3*time.Second) }

// attackerAddress is the source address of attackers. Other clients call from 127.0.0.1.
const attackerAddress = "127.0.0.2"

// measureAttack measures what other clients get before and during an attack. make test only requires that they get
// something: how much they get says little on a busy machine. For the same reason a bad measurement is repeated, twice
// at most. What was called during the attack, if anything, is to succeed too.
func (c *cluster) measureAttack(t *testing.T, n *node, attack func() (stop func()), during ...func() error) {
	t.Helper()
	for try := 1; ; try++ {
		before := c.pairsPerSecond(t, n, 4, attackSpan())
		stop := attack()
		var failed error
		for _, call := range during {
			failed = errors.Join(failed, call())
		}
		left := c.pairsPerSecond(t, n, 4, attackSpan())
		stop()
		t.Logf("others had %.0f pairs a second before the attack and %.0f during it", before, left)
		if failed == nil && left > 0 && (left >= before/2 || !verify.Enabled()) {
			return
		}
		if try == 3 {
			t.Fatalf("others keep %.0f of %.0f pairs a second, %v", left, before, failed)
		}
	}
}

// silentCalls opens calls whose bodies never arrive. A call that ends is replaced by another until stop is called.
func silentCalls(t *testing.T, client *http.Client, target, kind string, announced int64, count int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	var all sync.WaitGroup
	for range count {
		all.Go(func() {
			for ctx.Err() == nil {
				silent, end := io.Pipe()
				request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, silent)
				if err != nil {
					t.Error(err)
					return
				}
				request.ContentLength = announced
				request.Header.Set("Content-Type", kind)
				if answer, err := client.Do(request); err == nil {
					_, _ = io.Copy(io.Discard, answer.Body) // what an attacker is told does not matter
					_ = answer.Body.Close()
				}
				_ = end.Close()
				select {
				case <-ctx.Done():
				case <-time.After(time.Second):
				}
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

// TestAnnouncedBodies: 128 bodies of 4 MiB are announced on one connection to the leader and on one to a follower,
// from the address of all other clients, and never arrive.
func TestAnnouncedBodies(t *testing.T) {
	c := startCluster(t, clusterOptions{})
	c.applyTree(t, 1000)
	leader, follower := c.findLeader(t)
	c.measureAttack(t, follower, func() func() {
		var stops []func()
		for _, n := range []*node{leader, follower} {
			stops = append(stops, silentCalls(t, c.httpClient(t, ""),
				n.URL()+"/quorate.v1.AllocationService/Allocate", "application/json", 4<<20, 128))
		}
		time.Sleep(500 * time.Millisecond) // until all are announced
		return func() {
			for _, stop := range stops {
				stop()
			}
		}
	}, func() error {
		calls := c.treeClient(t, follower)
		for range 20 {
			if _, err := calls.GetUsage(t.Context(), &quoratev1.GetUsageRequest{Tree: "t"}); err != nil {
				return fmt.Errorf("a linearizable read on a follower: %w", err)
			}
		}
		return nil
	})
}

// TestManySilentCalls: one address opens more calls without bodies than the server has call slots.
func TestManySilentCalls(t *testing.T) {
	verify.Only(t) // TestAnnouncedBodies is the quick one of its kind
	c := startCluster(t, clusterOptions{size: 1, args: []string{"--max-calls", "64"}})
	c.applyTree(t, 1000)
	n := c.nodes[0]
	c.measureAttack(t, n, func() func() {
		stop := silentCalls(t, c.httpClient(t, attackerAddress), n.URL()+"/quorate.v1.AllocationService/Allocate",
			"application/json", 100, 256)
		time.Sleep(500 * time.Millisecond)
		return stop
	})
	// From the address of all other clients, too: they have to wait until the silent calls are cut off, and no
	// longer.
	stop := silentCalls(t, c.httpClient(t, ""), n.URL()+"/quorate.v1.AllocationService/Allocate",
		"application/json", 100, 48)
	waitFor(t, "places do not become free", func() bool { return c.pairsPerSecond(t, n, 1, time.Second) > 0 })
	stop()
}

// slowPosts keeps HTTP/1.1 connections on which an announced body arrives a byte at a time.
func slowPosts(t *testing.T, address, path string, count int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(attackerAddress)}}
	var all sync.WaitGroup
	for range count {
		all.Go(func() {
			for ctx.Err() == nil {
				slowPost(ctx, dialer, address, path)
				select {
				case <-ctx.Done():
				case <-time.After(time.Second):
				}
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

// slowPost ends when the server closes the connection.
func slowPost(ctx context.Context, dialer *net.Dialer, address, path string) {
	c, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer c.Close() //nolint:errcheck // an attacker does not care
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n", path)
	for err == nil {
		time.Sleep(time.Second)
		_, err = c.Write([]byte(" ")) // no front end finds an error in it
	}
}

// TestSlowPostsToFrontEnds: each front end gets more slow bodies than the server has call slots.
func TestSlowPostsToFrontEnds(t *testing.T) {
	verify.Only(t) // TestAnnouncedBodies is the quick one of its kind
	c := startCluster(t, clusterOptions{size: 1, args: []string{"--max-calls", "64"}})
	c.applyTree(t, 1000)
	n := c.nodes[0]
	for name, at := range map[string]struct{ address, path string }{
		"YuniKorn": {n.HTTP, "/ws/v1/validate-conf"}, "Boskos": {n.boskos, "/update?name=a&owner=b&state=c"},
	} {
		t.Run(name, func(t *testing.T) {
			c.measureAttack(t, n, func() func() {
				stop := slowPosts(t, at.address, at.path, 150)
				time.Sleep(500 * time.Millisecond)
				return stop
			})
		})
	}
}

// TestSilentReflection: many more idle streams of gRPC reflection than the server has call slots.
func TestSilentReflection(t *testing.T) {
	verify.Only(t) // TestAnnouncedBodies is the quick one of its kind
	c := startCluster(t, clusterOptions{size: 1, args: []string{"--max-calls", "64"}})
	c.applyTree(t, 1000)
	n := c.nodes[0]
	c.measureAttack(t, n, func() func() {
		stop := silentCalls(t, c.httpClient(t, ""),
			n.URL()+"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "application/grpc", -1, 256)
		time.Sleep(500 * time.Millisecond)
		return stop
	})
	waitFor(t, "the streams do not end", func() bool {
		_, page := c.httpGet(t, n, "/metrics")
		const open = `quorate_rpc_open{cluster="quorate",` +
			`procedure="/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"}`
		return strings.Contains(page, open+" 0")
	})
}

// TestManyConnections: one address opens many more connections than a server accepts.
func TestManyConnections(t *testing.T) {
	c := startCluster(t, clusterOptions{size: 1, args: []string{"--max-connections", "64"}})
	c.applyTree(t, 1000)
	n := c.nodes[0]
	c.measureAttack(t, n, func() func() {
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(attackerAddress)}}
		var open []net.Conn
		for range 300 {
			conn, err := dialer.DialContext(t.Context(), "tcp", n.HTTP)
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, conn)
		}
		return func() {
			for _, conn := range open {
				_ = conn.Close()
			}
		}
	})
}

// TestGreedyWatchers: one address opens all streams that it gets. Other clients can still watch, and wait for grants.
func TestGreedyWatchers(t *testing.T) {
	c := startCluster(t, clusterOptions{size: 1, args: []string{"--max-streams", "64"}})
	c.applyTree(t, 1)
	n := c.nodes[0]
	if _, err := c.allocationClient(t, n).Allocate(t.Context(), requestCores("all", 1)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	client := c.httpClient(t, attackerAddress)
	var refused, opened atomic.Int32
	for range 100 {
		go watchOnce(ctx, client, n.URL(), &opened, &refused)
	}
	waitFor(t, "the attacker does not have its share", func() bool { return opened.Load()+refused.Load() == 100 })
	if refused.Load() < 100-64 {
		t.Errorf("%d streams of 64 were opened and %d refused", opened.Load(), refused.Load())
	}
	waits := requestCores("waits", 1)
	waits.Mode, waits.WaitMs, waits.PollMs = quoratev1.Mode_MODE_WAIT, new(int64(60_000)), 500
	if answer, err := c.allocationClient(t, n).Allocate(t.Context(), waits); err != nil {
		t.Errorf("another caller cannot wait: %v", err)
	} else if answer.GetAllocation().GetState() != quoratev1.AllocationState_ALLOCATION_STATE_WAITING {
		t.Errorf("another caller has %v", answer.GetAllocation().GetState())
	}
	opened.Store(0)
	go watchOnce(ctx, c.httpClient(t, ""), n.URL(), &opened, &refused)
	waitFor(t, "another caller cannot watch", func() bool { return opened.Load() == 1 })
}

func watchOnce(ctx context.Context, client *http.Client, server string, opened, refused *atomic.Int32) {
	message := append(varint.BigEndian.AppendUint32([]byte{0}, 2), "{}"...)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		server+"/quorate.v1.EventService/WatchEvents", strings.NewReader(string(message)))
	if err != nil {
		return
	}
	request.Header.Set("Content-Type", "application/connect+json")
	answer, err := client.Do(request)
	if err != nil {
		refused.Add(1)
		return
	}
	defer answer.Body.Close() //nolint:errcheck // it is only read
	head := make([]byte, 1)
	if _, err := io.ReadFull(answer.Body, head); err != nil || head[0]&2 != 0 {
		refused.Add(1)
		return
	}
	opened.Add(1)
	_, _ = io.Copy(io.Discard, answer.Body) // until the test ends
}
