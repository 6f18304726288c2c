package admission

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func someLimiter(t testing.TB, most int) *Limiter {
	t.Helper()
	g, err := NewLimiters(Limits{Calls: most}.WithDefaults(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return g.Clients.Calls
}

func takeAll(g *Limiter, c *Caller) (taken int) {
	for g.TryAcquire(c, 1) == nil {
		taken++
	}
	return taken
}

// TestShares: a single caller gets most of the places but never all, competing callers get equal shares as places
// become free, and a new caller always gets a place.
func TestShares(t *testing.T) {
	g, greedy, other := someLimiter(t, 8192), &Caller{key: "greedy"}, &Caller{key: "other"}
	if got := takeAll(g, greedy); got != 6144 {
		t.Errorf("one caller alone got %d of 8192, want three quarters", got)
	}
	if err := g.TryAcquire(greedy, 1); err == nil ||
		!strings.Contains(err.Error(), "greedy has 6144 of the 8192 calls under way") {
		t.Errorf("the refusal says %v", err)
	}
	if got := takeAll(g, other); got != 1536 {
		t.Errorf("the next got %d, want three quarters of the rest", got)
	}
	for range 10_000 { // each releases one place and requests two
		for _, c := range []*Caller{greedy, other} {
			g.Release(c, 1)
			_, _ = g.TryAcquire(c, 1), g.TryAcquire(c, 1)
		}
	}
	a, b := greedy.held[kindCalls].Load(), other.held[kindCalls].Load()
	if want := int64(8192 * 3 / 7); a-want > 2 || want-a > 2 || b-want > 2 || want-b > 2 {
		t.Errorf("two greedy callers hold %d and %d, want about %d", a, b, want)
	}
	for i := range 4 {
		if takeAll(g, &Caller{key: fmt.Sprint("greedy-", i)}) == 0 {
			t.Errorf("the next caller, number %d, got nothing", i)
		}
	}
	g.Release(greedy, a)
	g.Release(other, b)
	if !greedy.isIdle() || !other.isIdle() {
		t.Error("callers who gave all back are not idle")
	}
}

// TestSmallGates: one caller may use all places of a small limiter.
func TestSmallGates(t *testing.T) {
	for most, want := range map[int]int{1: 1, 2: 2, 3: 3, 4: 3, 8: 6} {
		if got := takeAll(someLimiter(t, most), &Caller{}); got != want {
			t.Errorf("of %d places one caller got %d, want %d", most, got, want)
		}
	}
}

func TestCallerKeys(t *testing.T) {
	for address, want := range map[string]string{
		"10.1.2.3:77": "10.1.2.3", "[::ffff:10.1.2.3]:77": "10.1.2.3",
		"[2001:db8:1:2:3:4:5:6]:77": "2001:db8:1:2::/64", "[2001:db8:1:2::9]:1": "2001:db8:1:2::/64",
		"[fe80::1]:1": "fe80::/64",
	} {
		tcp, err := net.ResolveTCPAddr("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if got := callerKey(tcp); got != want {
			t.Errorf("%s is %s, want %s", address, got, want)
		}
	}
	if got := callerKey(&net.UnixAddr{}); got != "unknown" {
		t.Errorf("got %s", got)
	}
}
