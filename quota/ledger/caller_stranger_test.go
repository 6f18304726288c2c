package ledger_test

import (
	"testing"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// A caller without a credential is refused before anything is written, also for ids that are not known.
func TestStrangersAreRefusedBeforeTheLog(t *testing.T) {
	g := newGuarded(t, machineTree(), "hans")
	view, stranger := g.ledger.Reader().At(wallNow), &access.Caller{Kind: access.Anonymous}
	for _, c := range []quota.Command{
		quota.Release{ID: "none"},
		quota.Renew{ID: "none"},
		quota.Resize{ID: "none"},
		quota.Transfer{ID: "none"},
		quota.Split{ID: "none"},
		quota.Confirm{ID: "none"},
		quota.Cancel{ID: "none"},
		quota.WithdrawRequest{Number: 9},
		quota.RejectRequest{Number: 9},
		quota.ApproveRequest{Number: 9},
		quota.CancelScheduledLimit{ID: "none"},
		quota.ApplyTrees{RemovePolicies: []string{"none"}},
		quota.ApplyTrees{Access: &access.Section{}},
	} {
		if _, refused := view.RefusalOf(stranger, c); !refused {
			t.Errorf("%T of a caller without a credential would be written to the log", c)
		}
	}
}
