package admission

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/cluster"
)

func expensiveForTest(t *testing.T) *ExpensiveReads {
	t.Helper()
	gates, err := NewLimiters(Limits{}.WithDefaults(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	e, err := newExpensiveReads(gates.Expensive, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestExpensiveReadsTakeAShare: expensive reads run one at a time and take a quarter of the time, for any number of
// callers.
func TestExpensiveReadsTakeAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := expensiveForTest(t)
		const took, span = 50 * time.Millisecond, 100 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), span)
		defer cancel()
		var all sync.WaitGroup
		running, reads := 0, 0
		for i := range 16 {
			all.Go(func() {
				for ctx.Err() == nil {
					leave, err := e.WaitTurn(ctx, &Caller{key: string(rune('a' + i))}, 0)
					if err != nil {
						return
					}
					if running++; running != 1 {
						t.Error("two reads at a time")
					}
					time.Sleep(took)
					running--
					reads++
					leave()
				}
			})
		}
		all.Wait()
		if share := time.Duration(reads) * took; share < span/5 || share > span*3/10 {
			t.Errorf("%d reads of %v in %v", reads, took, span)
		}
	})
}

// TestOccasionalExpensiveReadsDoNotWait: a caller that reads rarely is never delayed.
func TestOccasionalExpensiveReadsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := expensiveForTest(t)
		for range 20 {
			for range 4 {
				began := time.Now()
				leave, err := e.WaitTurn(t.Context(), nil, 0)
				if err != nil || time.Since(began) != 0 {
					t.Fatalf("it waited %v: %v", time.Since(began), err)
				}
				time.Sleep(50 * time.Millisecond)
				leave()
			}
			time.Sleep(time.Second)
		}
	})
}

// TestALongReadIsNotChargedForEver: after a long read, the next one begins before its caller's deadline.
func TestALongReadIsNotChargedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := expensiveForTest(t)
		leave, err := e.WaitTurn(t.Context(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		leave()
		began := time.Now()
		if leave, err = e.WaitTurn(t.Context(), nil, 0); err != nil || time.Since(began) > DefaultDeadline/2 {
			t.Fatalf("it waited %v: %v", time.Since(began), err)
		}
		leave()
	})
}

// TestCallersOfExpensiveReadsTakeTurns: the reads of a caller that sends many delay only each other.
func TestCallersOfExpensiveReadsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := expensiveForTest(t)
		known := map[string]*Caller{"greedy": {}, "b": {}, "c": {}}
		first, err := e.WaitTurn(t.Context(), known["greedy"], 0)
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		var all sync.WaitGroup
		ask := func(caller string) {
			all.Go(func() {
				leave, err := e.WaitTurn(t.Context(), known[caller], 0)
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, caller)
				leave()
			})
			synctest.Wait()
		}
		for range 5 {
			ask("greedy")
		}
		ask("b")
		ask("c")
		ask("b")
		first()
		all.Wait()
		if want := []string{
			"greedy", "b", "c", "greedy", "b", "greedy", "greedy",
			"greedy",
		}; !slices.Equal(order, want) {
			t.Errorf("the order is %v, want %v", order, want)
		}
	})
}

// TestImpatientExpensiveReads: a cancelled wait leaves no entry in the queue and returns the reason.
func TestImpatientExpensiveReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := expensiveForTest(t)
		first, err := e.WaitTurn(t.Context(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = e.WaitTurn(ctx, nil, 0)
		wantTooMany(t, err)
		if len(e.callers) != 0 || len(e.queues) != 0 {
			t.Errorf("left behind: %v, %v", e.callers, e.queues)
		}
		first()
		second, err := e.WaitTurn(t.Context(), &Caller{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		second()
	})
}

func wantTooMany(t *testing.T, err error) {
	t.Helper()
	var failed *cluster.Error
	if !errors.As(err, &failed) || failed.Reason != cluster.Overloaded || !failed.NotApplied ||
		!strings.Contains(failed.Text, "one after the other") {
		t.Errorf("got %v", err)
	}
}
