package admission

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/rpc/pipeline"
	"github.com/quorate/quorate/rpc/wire"
)

const (
	// expensiveShare is the part of a server's time that expensive reads may take in the long run: one in so many.
	expensiveShare = 4
	// expensiveBurst is how much unused time they may save up, so that an occasional read does not wait.
	expensiveBurst = 250 * time.Millisecond
	// maxCharge is the most that one read is charged, so that the next one comes soon enough for its caller's patience.
	maxCharge = 500 * time.Millisecond
)

// ExpensiveReads schedules the reads that cost as much as many writes: plans, dry runs, explanations, lists and whole
// trees. They keep the state from writers, or a processor, for milliseconds, and a caller that repeats them would
// leave writers nothing. So a server serves one at a time, and all of them together take no more than a share of its
// time.
type ExpensiveReads struct {
	*FairQueue

	limiter *Limiter
}

func newExpensiveReads(g *Limiter, registerer prometheus.Registerer) (*ExpensiveReads, error) {
	e := &ExpensiveReads{limiter: g, FairQueue: newFairQueue(expensiveShare)}
	for _, c := range []prometheus.Collector{
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "quorate_rpc_expensive_reads_dropped_total",
			Help: "Expensive reads whose callers did not wait for their turn.",
		}, func() float64 { return float64(e.dropped.Load()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "quorate_rpc_expensive_reads_seconds_total", Help: "Time that expensive reads took, one at a time.",
		}, func() float64 { return time.Duration(e.taken.Load()).Seconds() }),
	} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of expensive reads: %w", err)
		}
	}
	return e, nil
}

// TryEnter takes a place among the reads that are under way or wait, which give returns.
func (e *ExpensiveReads) TryEnter(caller *Caller) (give func(), err error) {
	if err := e.limiter.TryAcquire(caller, 1); err != nil {
		return nil, err
	}
	return func() { e.limiter.Release(caller, 1) }, nil
}

// DecodeInTurn has large requests decoded and checked one at a time. That takes as long as many writes, and happens
// before anything is known of what is asked. The turn ends when the call reads or proposes something, or is answered.
func (a *Controller) DecodeInTurn(x *pipeline.Exchange) bool {
	r := x.Request
	notes := TicketOf(r.Context())
	if r.ContentLength > SmallBody {
		leave, err := a.Decoding.WaitTurn(r.Context(), notes.Caller, 0)
		if err != nil {
			a.hooks.WriteError(x.Writer, r, wire.ToError(err))
			return false
		}
		notes.decoding.AddEnd(leave)
	}
	notes.received = time.Now()
	return true
}
