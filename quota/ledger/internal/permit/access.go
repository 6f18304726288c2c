package permit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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
	switch change := c.Change.(type) {
	case access.ReplaceSection:
		return state.Outcome{Refused: quota.Errorf(quota.Invalid, "",
			"the access section changes with the configuration; apply it")}
	case access.SetMode:
		if err := g.checkMode(change.Mode); err != nil {
			return state.Outcome{Refused: err}
		}
	case access.Bootstrap:
		if change.Guard {
			if err := g.checkMode(access.Guarded); err != nil {
				return state.Outcome{Refused: err}
			}
		}
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

// checkMode refuses to guard a cluster while trees name admins, who would have no rights.
func (g Guard) checkMode(mode access.Mode) *quota.Error {
	if mode != access.Guarded {
		return nil
	}
	if governed := GovernedTrees(g.forest); len(governed) > 0 {
		return quota.Errorf(quota.InUse, "mode", "these trees name admins, which count for nothing in a guarded cluster: "+
			"%s; turn them into bindings, with the users that they are: quorate access adopt-admins%s",
			configure.ListTexts(governed), adminFlags(g.forest, governed))
	}
	return nil
}

// maxAdminFlags bounds the admins that a refusal names; a command without the others says which are missing.
const maxAdminFlags = 20

// adminFlags are flags that give each admin of some trees an account of the same name. Names that a shell could take
// for more than a word are left out, because the text is made to be pasted.
func adminFlags(f *state.Forest, trees []string) string {
	names := map[string]bool{}
	for _, tree := range trees {
		for _, name := range AllAdmins(f.Trees[tree]) {
			names[name] = true
		}
	}
	var flags strings.Builder
	sorted := slices.DeleteFunc(slices.Sorted(maps.Keys(names)), func(name string) bool { return !quota.IsName(name) })
	for _, name := range sorted[:min(len(sorted), maxAdminFlags)] {
		fmt.Fprintf(&flags, " --map %s=account/%s", name, name)
	}
	return flags.String()
}

// AllAdmins are the admins of the tree and its nodes, sorted.
func AllAdmins(t *state.Tree) []string {
	var list []string
	t.Root.Walk(func(n *state.Node) bool {
		list = append(list, n.Spec.Admins...)
		return true
	})
	slices.Sort(list)
	return slices.Compact(list)
}

// TreeAdmins are the admins that a tree names.
type TreeAdmins struct {
	Tree string
	// Admins are sorted.
	Admins []string
}

// GovernedTrees are the trees that name admins, sorted.
func GovernedTrees(f *state.Forest) []string {
	var list []string
	for name, t := range f.Trees {
		if t.Governed {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
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
