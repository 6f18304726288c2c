package admission

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/rpc/pipeline"
	"github.com/quorate/quorate/rpc/procedures"
)

type userKey struct{}

// controllerForUsers charges calls to the user in their context.
func controllerForUsers(t testing.TB, l Limits) *Controller {
	t.Helper()
	a, err := NewController(l, procedures.Table{}, prometheus.NewRegistry(), ControllerHooks{
		WriteError: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		},
		RelayedByMember: func(r *http.Request) bool {
			return r.Header.Get("Relayed") != ""
		},
		UserOf: func(ctx context.Context) string {
			name, _ := ctx.Value(userKey{}).(string)
			return name
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// begin takes a call through the steps for users, and passes its ticket to handle.
func begin(a *Controller, user string, relayed bool, handle func(*Ticket)) (answer string) {
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	if relayed {
		r.Header.Set("Relayed", "n2")
	}
	r = r.WithContext(context.WithValue(r.Context(), userKey{}, user))
	p := pipeline.Pipeline{
		Steps: []pipeline.Step{a.IssueTicket, a.AttributeUser},
		Last:  http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { handle(TicketOf(r.Context())) }),
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w.Body.String()
}

// TestUsersHaveFixedShares: a user gets its share of each limit and no more, the refusal says whose share it is, and
// another user gets as much.
func TestUsersHaveFixedShares(t *testing.T) {
	a := controllerForUsers(t, Limits{Calls: 80, Streams: 80})
	clients, members := &a.Limiters.Clients, &a.Limiters.Members
	for _, c := range []struct {
		name    string
		limiter *Limiter
		share   int
	}{
		{"calls", clients.Calls, 20},
		{"streams", clients.Streams, 10},
		{"waits", clients.Waits, 8},
		{"relayed calls", members.Calls, 20},
		{"relayed streams", members.Streams, 10},
		{"relayed waits", members.Waits, 8},
		{"expensive reads", a.Limiters.Expensive, 8},
	} {
		for _, user := range []string{"account/greedy", "account/other"} {
			begin(a, user, false, func(ticket *Ticket) {
				if got := takeAll(c.limiter, ticket.Caller); got != c.share {
					t.Errorf("%s: %s got %d, want %d", c.name, user, got, c.share)
				}
				err := c.limiter.TryAcquire(ticket.Caller, 1)
				for _, part := range []string{
					fmt.Sprintf("user %s has %d of the %d ", user, c.share, c.limiter.capacity), c.limiter.setting,
					fmt.Sprintf("the share of one user is %d", c.share), "nothing was done",
				} {
					if err == nil || !strings.Contains(err.Error(), part) {
						t.Errorf("%s: the refusal says %v, want %q in it", c.name, err, part)
					}
				}
			})
		}
		c.limiter.InUse.Store(0)
	}
}

// TestAUserIsOneCaller: calls of a user share what they hold, relayed ones too; calls without a user do not.
func TestAUserIsOneCaller(t *testing.T) {
	a := controllerForUsers(t, Limits{})
	begin(a, "account/a", false, func(direct *Ticket) {
		begin(a, "account/a", true, func(relayed *Ticket) {
			if direct.Caller != relayed.Caller || relayed.Limiters != &a.Limiters.Members {
				t.Errorf("direct: %p, relayed: %p", direct.Caller, relayed.Caller)
			}
		})
		begin(a, "account/b", false, func(other *Ticket) {
			if other.Caller == direct.Caller {
				t.Error("two users are one caller")
			}
		})
		begin(a, "", false, func(unknown *Ticket) {
			if unknown.Caller != nil {
				t.Errorf("a call without a user is of %q", unknown.Caller.key)
			}
		})
	})
}

// TestUsersAreForgotten: a server remembers no more than a number of users without calls, and all with calls.
func TestUsersAreForgotten(t *testing.T) {
	a := controllerForUsers(t, Limits{})
	begin(a, "account/busy", false, func(busy *Ticket) {
		for i := range 2 * MaxUsers {
			begin(a, fmt.Sprint("account/", i), false, func(*Ticket) {})
			if n := a.Limiters.UserCount(); n > MaxUsers {
				t.Fatalf("%d users are remembered", n)
			}
		}
		begin(a, "account/busy", false, func(again *Ticket) {
			if again.Caller != busy.Caller {
				t.Error("a user with a call was forgotten")
			}
		})
	})
}

// TestUsersHaveARate: a user begins no more calls in a second than the setting says; others and relayed calls are not
// counted, and without the setting none are.
func TestUsersHaveARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := controllerForUsers(t, Limits{CallsPerSecondPerUser: 10})
		served := func(user string, relayed bool, calls int) (n int) {
			for range calls {
				answer := begin(a, user, relayed, func(*Ticket) { n++ })
				if answer != "" && !strings.Contains(answer, "the 10 calls in a second") {
					t.Errorf("the answer is %q", answer)
				}
			}
			return n
		}
		if n := served("account/a", false, 100); n != 10 {
			t.Errorf("%d calls at once, want 10", n)
		}
		if n := served("account/b", false, 5); n != 5 {
			t.Errorf("%d calls of another user, want 5", n)
		}
		if n := served("account/a", true, 100); n != 100 {
			t.Errorf("%d relayed calls, want 100", n)
		}
		time.Sleep(500 * time.Millisecond)
		if n := served("account/a", false, 100); n != 5 {
			t.Errorf("%d calls after half a second, want 5", n)
		}
		a = controllerForUsers(t, Limits{})
		if n := served("account/a", false, 1000); n != 1000 {
			t.Errorf("%d calls without a rate", n)
		}
	})
}

// TestALimiterGivesBackWhatItTook: after any sequence of calls of users and addresses, a limiter and its callers hold
// what those hold that were admitted, and no user more than its share.
func TestALimiterGivesBackWhatItTook(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shed := prometheus.NewCounter(prometheus.CounterOpts{Name: "shed"})
		g := &Limiter{kind: kindCalls, capacity: 40, full: shed, beyondShare: shed, beyondUserShare: shed}
		g.withUserPart(UserCalls)
		callers := []*Caller{
			{key: "user a", isUser: true}, {key: "user b", isUser: true}, {key: "127.0.0.1"}, {key: "127.0.0.2"},
		}
		held := make([]int64, len(callers))
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			i := rapid.IntRange(0, len(callers)-1).Draw(t, "caller")
			total := held[0] + held[1] + held[2] + held[3]
			if held[i] > 0 && rapid.Bool().Draw(t, "gives back") {
				g.Release(callers[i], 1)
				held[i]--
				continue
			}
			fits := total < 40 && held[i]+1 <= shareOfFree*(40-total) && (!callers[i].isUser || held[i] < 10)
			if err := g.TryAcquire(callers[i], 1); (err == nil) != fits {
				t.Fatalf("held %v, %s takes one more: %v", held, callers[i].key, err)
			}
			if fits {
				held[i]++
			}
		}
		for i, c := range callers {
			if got := c.held[kindCalls].Load(); got != held[i] {
				t.Errorf("%s holds %d, want %d", c.key, got, held[i])
			}
		}
	})
}
