package client_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/client"
)

// A call beside which none waits is sent at once, as a unary call.
func TestOneCallerIsNotJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBatchServer()
		c, began := s.client(t), time.Now()
		for i := range 10 {
			if _, err := c.Allocations.Allocate(t.Context(), named(fmt.Sprintf("a-%d", i), 0)); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); s.unary != 10 || len(s.batches) != 0 || took != 20*time.Millisecond {
			t.Errorf("%d unary calls and %d batches in %v, want 10 and none in 20ms", s.unary, len(s.batches), took)
		}
	})
}

func TestConcurrentCallsAreJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBatchServer()
		for _, err := range callTogether(t.Context(), t, s.client(t), "a", 256, 0) {
			if err != nil {
				t.Error(err)
			}
		}
		if len(s.times) != 256 || s.unary > 3 || len(s.batches) > 2 {
			t.Errorf("%d ids in %d unary calls and %d batches", len(s.times), s.unary, len(s.batches))
		}
		separate := newBatchServer()
		callTogether(t.Context(), t, separate.client(t, client.WithoutJoining()), "a", 256, 0)
		if separate.unary != 256 || len(separate.batches) != 0 {
			t.Errorf("without joining: %d unary calls, %d batches", separate.unary, len(separate.batches))
		}
	})
}

// A batch has at most as many calls as the API allows, and is small enough for the queue of small requests.
func TestBatchesAreBounded(t *testing.T) {
	for size, most := range map[int]int{0: 1000, 300: 1000, 7000: 20, 9000: 1} {
		synctest.Test(t, func(t *testing.T) {
			s := newBatchServer()
			for _, err := range callTogether(t.Context(), t, s.client(t), "a", 1500, size) {
				if err != nil {
					t.Error(err)
				}
			}
			largest := 1
			for _, ids := range s.batches {
				largest = max(largest, len(ids))
			}
			if largest > most || s.bytes > 128<<10 || len(s.times) != 1500 {
				t.Errorf("requests of %d bytes: %d ids, the largest batch has %d and %d bytes", size, len(s.times), largest,
					s.bytes)
			}
		})
	}
}

// Each caller gets its own answer or error, with the details that the unary call has.
func TestOutcomesOfABatchAreTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBatchServer()
		c := s.client(t)
		var all sync.WaitGroup
		all.Go(func() { callTogether(t.Context(), t, c, "a", 50, 0) })
		for i, err := range callTogether(t.Context(), t, c, "d", 50, 0) {
			decision, denied := client.DecisionOf(err)
			if !denied || connect.CodeOf(err) != connect.CodeResourceExhausted || !connect.IsWireError(err) ||
				decision.GetExplanation() != inTheWay().GetExplanation() ||
				err.Error() != fmt.Sprintf("resource_exhausted: denied: d-%d", i) {
				t.Errorf("call %d: %v", i, err)
			}
		}
		all.Wait()
		if len(s.batches) == 0 {
			t.Error("nothing was joined")
		}
	})
}

// A caller that gives up before its call is sent knows that it was not carried out; later it does not know.
func TestGivingUpOnAJoinedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBatchServer()
		c, release := s.client(t), s.setStall()
		var all sync.WaitGroup
		all.Go(func() { callTogether(t.Context(), t, c, "a", 2, 0) }) // these take the slots
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		for _, err := range callTogether(short, t, c, "b", 3, 0) {
			if connect.CodeOf(err) != connect.CodeDeadlineExceeded || client.MayBeDone(err) {
				t.Errorf("not sent: %v, may be done: %v", err, client.MayBeDone(err))
			}
		}
		cancelled, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		for _, err := range callTogether(cancelled, t, c, "c", 3, 0) {
			if connect.CodeOf(err) != connect.CodeCanceled {
				t.Errorf("cancelled: %v", err)
			}
		}
		all.Go(func() { callTogether(t.Context(), t, c, "e", 3, 0) })
		release()
		all.Wait()
		if s.times["b-0"]+s.times["b-1"]+s.times["c-2"] != 0 || s.times["e-1"] != 1 {
			t.Errorf("arrived: %v", s.times)
		}
	})
}

func TestGivingUpOnABatchUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBatchServer()
		c := s.client(t)
		var all sync.WaitGroup
		all.Go(func() { callTogether(t.Context(), t, c, "a", 2, 0) })
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		all.Go(func() {
			for _, err := range callTogether(short, t, c, "b", 3, 0) {
				if connect.CodeOf(err) != connect.CodeDeadlineExceeded || !client.MayBeDone(err) {
					t.Errorf("sent: %v, may be done: %v", err, client.MayBeDone(err))
				}
			}
		})
		time.Sleep(1500 * time.Microsecond)
		release := s.setStall() // for the batch, which is sent after two milliseconds
		time.Sleep(50 * time.Millisecond)
		release()
		all.Wait()
	})
}

// A batch without an answer is repeated for each caller, and one that is refused as such is taken apart.
func TestFailedBatches(t *testing.T) {
	for name, spoil := range map[string]func(*batchServer){
		"lost":    func(s *batchServer) { s.lose = 3 },
		"refused": func(s *batchServer) { s.refuse = true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newBatchServer()
				spoil(s)
				began := time.Now()
				for _, err := range callTogether(t.Context(), t, s.client(t), "a", 100, 0) {
					if err != nil {
						t.Error(err)
					}
				}
				took := time.Since(began)
				if s.unary+len(s.batches) < 4 || s.refuse && s.unary != 100 || took > 500*time.Millisecond {
					t.Errorf("%d unary calls, %d batches in %v", s.unary, len(s.batches), took)
				}
			})
		})
	}
}

// Calls with different credentials are never in one batch.
func TestCredentialsAreNotMixed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type tokenKey struct{}
		s := newBatchServer()
		authorize := func(next connect.UnaryFunc) connect.UnaryFunc {
			return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
				token, _ := ctx.Value(tokenKey{}).(string)
				r.Header().Set("Authorization", token)
				r.Header().Set("Traceparent", fmt.Sprint(rand.Int()))
				return next(ctx, r)
			}
		}
		c := s.client(t, client.WithInterceptors(connect.UnaryInterceptorFunc(authorize)))
		var all sync.WaitGroup
		for _, token := range []string{"x", "y", "z"} {
			all.Go(func() { callTogether(context.WithValue(t.Context(), tokenKey{}, token), t, c, token, 50, 0) })
		}
		all.Wait()
		for id, tokens := range s.tokens {
			if tokens[0] != id[:1] {
				t.Errorf("%s was sent with the credentials of %s", id, tokens[0])
			}
		}
		if len(s.batches) < 3 || len(s.batches) > 8 {
			t.Errorf("%d batches, want one or two for each credential", len(s.batches))
		}
	})
}

// All callers that call in a loop advance at the same pace, also beside large requests.
func TestJoinedCallersAdvanceTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBatchServer()
		c := s.client(t)
		done := make([]int, 2500)
		var all sync.WaitGroup
		for i := range done {
			all.Go(func() {
				for began := time.Now(); time.Since(began) < 100*time.Millisecond; done[i]++ {
					if _, err := c.Allocations.Allocate(t.Context(),
						named(fmt.Sprintf("a-%d-%d", i, done[i]), 1000*(i%50/49))); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		least, most := done[0], done[0]
		for _, n := range done {
			least, most = min(least, n), max(most, n)
		}
		if least < 10 || most > 2*least {
			t.Errorf("callers made between %d and %d calls", least, most)
		}
	})
}

// Callers that come and give up all the time leave nothing behind, and the calls of others go on.
func TestManyCancellations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBatchServer()
		c, unsent := s.client(t), map[string]bool{}
		var all sync.WaitGroup
		var mu sync.Mutex
		for i := range 3000 {
			all.Go(func() {
				time.Sleep(rand.N(100 * time.Millisecond))
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(6*time.Millisecond))
				defer cancel()
				id := fmt.Sprintf("a-%d", i)
				_, err := c.Allocations.Allocate(ctx, named(id, 0))
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: %v", id, err)
				}
				if err != nil && !client.MayBeDone(err) {
					mu.Lock()
					defer mu.Unlock()
					unsent[id] = true
				}
			})
		}
		for range 5 {
			time.Sleep(15 * time.Millisecond)
			release := s.setStall()
			time.Sleep(5 * time.Millisecond)
			release()
		}
		all.Wait()
		for id := range unsent {
			if s.times[id] != 0 {
				t.Errorf("%s was said not to be sent, and arrived", id)
			}
		}
		before := s.unary
		_, err := c.Allocations.Allocate(t.Context(), named("z", 0))
		if err != nil || s.unary != before+1 || len(unsent) < 10 {
			t.Errorf("afterwards: %v, %d unary calls more, %d were not sent", err, s.unary-before, len(unsent))
		}
	})
}
