package ledger_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestWaitingUnderChangingPolicies: requests wait while policies are redefined under them. After each command all
// invariants are true: no request waits that could be granted, each is queued at what is in its way, and a restored
// ledger has the same state.
func TestWaitingUnderChangingPolicies(t *testing.T) {
	t.Parallel()
	verify.Check(t, func(t *rapid.T) {
		l := ledger.New(quota.DefaultBounds())
		apply := func(c quota.Command) {
			l.Apply(quota.Stamp{At: l.Reader().Now() + 1}, c)
			if err := l.Check(); err != nil {
				t.Fatalf("after %T %+v: %v", c, c, err)
			}
		}
		for range 3 {
			apply(quota.ApplyTrees{Policies: quotatest.Policies().Draw(t, "first policies")})
		}
		for range 60 {
			switch quotatest.Die(t, 8, "kind") {
			case 0, 1:
				apply(quotatest.PolicyChanges().Draw(t, "policies"))
			case 2:
				tree := quotatest.BorrowingTree("t").Draw(t, "tree")
				tree.Trees[0] = quotatest.WithPolicies(t, tree.Trees[0])
				apply(tree)
			default:
				apply(waitingCommand(t))
			}
		}
		restored := reload(t, l)
		if quotatest.ImageText(l.Snapshot()) != quotatest.ImageText(restored.Snapshot()) {
			t.Fatal("a restored ledger has another state")
		}
	})
}

// waitingCommand is a command of a borrowing tree with one claim in each list, and most often a request waits.
func waitingCommand(t *rapid.T) quota.Command {
	c := quotatest.BorrowingCommands().Draw(t, "command")
	request, ok := c.(quota.Allocate)
	if !ok {
		return c
	}
	for i, list := range request.AnyOf {
		request.AnyOf[i] = list[:1]
		list[0].Tree = "t"
	}
	if len(request.Claims) > 0 {
		request.Claims = request.Claims[:1]
		request.Claims[0].Tree = "t"
	}
	if request.Mode == quota.Hold && quotatest.Die(t, 4, "hold") > 0 {
		request.Mode = quota.Wait
	}
	return request
}
