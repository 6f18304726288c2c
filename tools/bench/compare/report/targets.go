package report

import (
	"fmt"
	"strings"
)

// Server and EarlierServer begin the names of the servers under comparison; the log store follows.
const (
	Server        = "quorate-"
	EarlierServer = "before-"
)

// Guarded is the server with the log store wal in a guarded cluster.
const Guarded = "guarded-wal"

// The systems by name.
const (
	quorateWAL    = Server + "wal"
	quorateBolt   = Server + "bolt"
	prototypeWAL  = "prototype-wal"
	prototypeBolt = "prototype-bolt"
	etcd          = "etcd"
	postgres      = "postgres"
)

type value func(Sample) float64

func perSecond(s Sample) float64 { return s.PerSecond }

// measured names a figure: of the first of some systems that was measured.
type measured struct {
	systems  []string
	caseName string
	figure   value
}

// Target is a ratio of two figures of the same round.
type Target struct {
	// What names the ratio.
	What string
	// Goal is the ratio to reach, or not to exceed if AtMost is true.
	Goal   float64
	AtMost bool

	figure, base measured
}

// Outcome is a target with what was measured.
type Outcome struct {
	Target
	// Ratio is over the rounds that count.
	Ratio Spread
	// Before is the ratio of the earlier server; nil if none was measured.
	Before *Spread `json:",omitempty"`
	Rounds int
	// Met is true if the median reaches the goal.
	Met bool
}

// ours is the server under comparison, with the faster log store if it has one.
var ours = []string{quorateWAL, quorateBolt} //nolint:gochecknoglobals // constant

// targets are the ratios that the project wants to reach.
func targets() []Target {
	var list []Target
	add := func(what string, goal float64, atMost bool, figure, base measured) {
		list = append(list, Target{what, goal, atMost, figure, base})
	}
	rate := func(caseName string, systems ...string) measured { return measured{systems, caseName, perSecond} }
	for _, n := range []int{1, 16, 64, 256} {
		name := fmt.Sprintf("unary-%d", n)
		add(fmt.Sprintf("unary pairs/s, %s: over the prototype on raft-wal", plural(n)), 0.95, false,
			rate(name, ours...), rate(name, prototypeWAL))
	}
	for _, n := range []int{1, 16, 64, 256} {
		name := fmt.Sprintf("unary-%d", n)
		add(fmt.Sprintf("raft-boltdb, unary pairs/s, %s: over the prototype on raft-boltdb", plural(n)), 0.95, false,
			rate(name, quorateBolt), rate(name, prototypeBolt))
	}
	add("batch of 64, one caller: over the prototype", 0.8, false,
		rate("batch-64x1", ours...), rate("batch-64x1", prototypeWAL))
	add("batch of 512, four callers: over the prototype", 0.7, false,
		rate("batch-512x4", ours...), rate("batch-512x4", prototypeWAL))
	add("batch of 512, four callers: over unary, 256 callers (150,000 where unary reaches 8,000)", 18.75, false,
		rate("batch-512x4", ours...), rate("unary-256", ours...))
	add("64 callers on one leaf: over etcd", 100, false, rate("unary-64", ours...), rate("unary-64", etcd))
	add("one caller: over etcd", 1.4, false, rate("unary-1", ours...), rate("unary-1", etcd))
	add("64 callers on one leaf: over PostgreSQL with a synchronous standby", 12, false,
		rate("unary-64", ours...), rate("unary-64", postgres))
	add("one caller: over PostgreSQL with a synchronous standby", 0.7, false,
		rate("unary-1", ours...), rate("unary-1", postgres))
	add("Go client that joins calls, 256 callers: over unary, 256 callers", 7, false,
		rate("client-256", ours...), rate("unary-256", ours...))
	add("linearizable reads/s, 64 callers: over unary pairs/s", 5, false,
		rate("reads-64", ours...), rate("unary-64", ours...))
	add("linearizable reads/s at a follower, 64 callers: over unary pairs/s", 5, false,
		rate("follower-reads-64", ours...), rate("unary-64", ours...))
	add("through a follower, 64 callers: over direct", 0.85, false,
		rate("follower-64", ours...), rate("unary-64", ours...))
	add("64 callers beside 1,000 watchers that see nothing: over without", 0.95, false,
		rate("watched-1000", ours...), rate("unary-64", ours...))
	add("64 callers beside 10,000 watchers that see nothing: over without", 0.8, false,
		rate("watched-10000", ours...), rate("unary-64", ours...))

	for _, n := range []int{1, 64, 256} {
		name := fmt.Sprintf("unary-%d", n)
		add(fmt.Sprintf("guarded cluster, unary pairs/s, %s: over an open one", plural(n)), 0.95, false,
			rate(name, Guarded), rate(name, quorateWAL))
	}

	leaderCPU := func(s Sample) float64 { return s.CPUMicros.Leader }
	add("CPU of a unary pair on the leader, 64 callers: over the prototype", 1.3, true,
		measured{ours, "unary-64", leaderCPU}, measured{[]string{prototypeWAL}, "unary-64", leaderCPU})
	totalCPU := func(s Sample) float64 { return s.CPUMicros.Total() }
	add("CPU of a pair in batches of 512, client, leader and followers: over the prototype", 1.5, true,
		measured{ours, "batch-512x4", totalCPU}, measured{[]string{prototypeWAL}, "batch-512x4", totalCPU})
	return list
}

func plural(callers int) string {
	if callers == 1 {
		return "1 caller"
	}
	return fmt.Sprintf("%d callers", callers)
}

func (r *Run) evaluate(t Target) (o Outcome, ok bool) {
	ratios := r.ratios(t, Server)
	if len(ratios) == 0 {
		return Outcome{}, false
	}
	o = Outcome{Target: t, Ratio: spreadOf(ratios), Rounds: len(ratios)}
	o.Met = o.Ratio.Median >= t.Goal
	if t.AtMost {
		o.Met = o.Ratio.Median <= t.Goal
	}
	if earlier := r.ratios(t, EarlierServer); len(earlier) > 0 {
		spread := spreadOf(earlier)
		o.Before = &spread
	}
	return o, true
}

func (r *Run) ratios(t Target, server string) (ratios []float64) {
	for _, round := range r.counted() {
		figure, found := t.figure.in(round, server)
		base, hasBase := t.base.in(round, server)
		if found && hasBase && base > 0 {
			ratios = append(ratios, figure/base)
		}
	}
	return ratios
}

// in returns the figure in a round, that of the given server if it is one of a server.
func (m measured) in(round *Round, server string) (float64, bool) {
	for _, system := range m.systems {
		if store, isServer := strings.CutPrefix(system, Server); isServer {
			system = server + store
		}
		if s, found := round.sample(system, m.caseName); found {
			return m.figure(s), true
		}
	}
	return 0, false
}
