package permit

import (
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/configure"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// ChangeAccess carries out a command of the book. The access section is not changed here but with the trees, so that
// one revision has both.
func (g Guard) ChangeAccess(c quota.ChangeAccess, m state.Mode) state.Outcome {
	if n := len(c.Reason); n > quota.MaxReason {
		return state.Outcome{Refused: quota.Errorf(quota.Invalid, "reason",
			"the reason has %d bytes; at most %d are allowed", n, quota.MaxReason)}
	}
	if _, isSection := c.Change.(access.ReplaceSection); isSection {
		return state.Outcome{Refused: quota.Errorf(quota.Invalid, "",
			"the access section changes with the configuration; apply it")}
	}
	change, err := g.Env.Book.Apply(c.Change, configure.AccessMoment(g.CallerRights, g.forest))
	if err != nil {
		return state.Outcome{Refused: configure.AccessRefusal(err)}
	}
	if m == state.CarryOut && !change.IsEmpty() {
		g.plans.UseBook(change)
		g.journal.Changes = configure.AccessChanges(change.Differences)
	}
	return state.Outcome{Repeated: change.IsEmpty()}
}

func (g Guard) permitAccess(c access.Command) *quota.Error {
	switch c := c.(type) {
	case access.Bootstrap:
		return nil // its secret decides
	case access.RotateToken:
		if id, shown := g.Caller.Who.Token(); shown && id == c.Old {
			return nil // the new token can do no more, and lives no longer
		}
	case access.CreateAccount, access.UpdateAccount, access.DeleteAccount, access.CreateToken, access.RevokeToken,
		access.Refuse, access.Unrefuse, access.SetMode, access.ReplaceSection:
	}
	return g.NeedCluster(access.AccessManage)
}
