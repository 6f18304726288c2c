package gate

import (
	"fmt"
	"log/slog"
	"maps"
	"time"
)

// MaxTTL is the longest time to live of an allocation.
const MaxTTL = 7 * 24 * time.Hour

// Settings are those of a loop. The zero value of each field but Prefix means its default.
type Settings struct {
	// Prefix begins the ids of all allocations of this adapter: 1 to 63 letters, digits, dots, dashes or underscores.
	Prefix string
	// Identity are labels that all allocations of this adapter have. Allocations with the same prefix and without them
	// are left alone. At most 8, and no work has labels of the same names.
	Identity map[string]string
	// TTL makes allocations leases, which the loop renews: then a tree can revoke them with a grace, and a node can be
	// drained. An adapter that is away for longer loses what it holds. At most MaxTTL; 0 means none: allocations are held
	// until they are released.
	TTL time.Duration
	// Refresh is how often a waiting request is repeated, for its reason and to keep its place in the queue; the default
	// is a minute, 1 s to 30 min are allowed.
	Refresh time.Duration
	// Resync is how often both lists are compared as a whole, in case that a change was missed; the default is 5 minutes,
	// 1 s to 1 h are allowed.
	Resync time.Duration
	// Parallel is how many works are handled at a time; the default is 64, at most 1024.
	Parallel int
	// Log is where failures are written; the default is slog.Default.
	Log *slog.Logger
}

const (
	// callPatience bounds a call to either side.
	callPatience = 10 * time.Second
	// keepQueue is how long a request stays in the queue while the adapter is away: the longest that the API allows.
	keepQueue = time.Hour
	// firstPause and mostPause bound the pause after a failure of a work, which doubles each time.
	firstPause = 500 * time.Millisecond
	mostPause  = 10 * time.Second
	// deniedPause is the pause after a denial: limits change seldom.
	deniedPause = 30 * time.Second
	// coalescePause lets changes that come together cause one pass.
	coalescePause = 20 * time.Millisecond
)

func (s Settings) complete() (Settings, error) {
	if !validPrefix.MatchString(s.Prefix) {
		return s, fmt.Errorf("prefix: %q is not 1 to 63 letters, digits, dots, dashes or underscores, "+
			"the first a letter or digit", s.Prefix)
	}
	if len(s.Identity) > 8 {
		return s, fmt.Errorf("identity: %d labels; at most 8 are allowed", len(s.Identity))
	}
	if s.TTL != 0 && (s.TTL < time.Second || s.TTL > MaxTTL) {
		return s, fmt.Errorf("ttl: %v is not 0 or 1s to %v", s.TTL, MaxTTL)
	}
	for _, span := range []struct {
		name           string
		value          *time.Duration
		usual, longest time.Duration
	}{
		{"refresh", &s.Refresh, time.Minute, 30 * time.Minute}, {"resync", &s.Resync, 5 * time.Minute, time.Hour},
	} {
		if *span.value == 0 {
			*span.value = span.usual
		}
		if *span.value < time.Second || *span.value > span.longest {
			return s, fmt.Errorf("%s: %v is not 1s to %v", span.name, *span.value, span.longest)
		}
	}
	if s.Parallel == 0 {
		s.Parallel = 64
	}
	if s.Parallel < 1 || s.Parallel > 1024 {
		return s, fmt.Errorf("parallel: %d is not 1 to 1024", s.Parallel)
	}
	if s.Log == nil {
		s.Log = slog.Default()
	}
	s.Identity = maps.Clone(s.Identity)
	return s, nil
}
