package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// changeAccess carries out a command of the book. The access section is not changed here but with the trees, so that
// one revision has both.
func (g guard) changeAccess(c quota.ChangeAccess, m mode) Outcome {
	if n := len(c.Reason); n > quota.MaxReason {
		return Outcome{Refused: quota.Errorf(quota.Invalid, "reason", "the reason has %d bytes; at most %d are allowed", n,
			quota.MaxReason)}
	}
	switch change := c.Change.(type) {
	case access.ReplaceSection:
		return Outcome{Refused: quota.Errorf(quota.Invalid, "",
			"the access section changes with the configuration; apply it")}
	case access.SetMode:
		if err := g.checkMode(change.Mode); err != nil {
			return Outcome{Refused: err}
		}
	case access.Bootstrap:
		if change.Guard {
			if err := g.checkMode(access.Guarded); err != nil {
				return Outcome{Refused: err}
			}
		}
	}
	change, err := g.env.book.Apply(c.Change, accessMoment(g.callerRights, g.forest))
	if err != nil {
		return Outcome{Refused: accessRefusal(err)}
	}
	if m == carryOut && !change.IsEmpty() {
		g.plans.useBook(change)
		g.journal.changes = accessChanges(change.Differences)
	}
	return Outcome{Repeated: change.IsEmpty()}
}

// checkMode refuses to guard a cluster while trees name admins, who would have no rights.
func (g guard) checkMode(mode access.Mode) *quota.Error {
	if mode != access.Guarded {
		return nil
	}
	if governed := g.forest.governedTrees(); len(governed) > 0 {
		return quota.Errorf(quota.InUse, "mode", "these trees name admins, which count for nothing in a guarded cluster: "+
			"%s; turn them into bindings, with the users that they are: quorate access adopt-admins%s",
			listTexts(governed), g.forest.adminFlags(governed))
	}
	return nil
}

// maxAdminFlags bounds the admins that a refusal names; a command without the others says which are missing.
const maxAdminFlags = 20

// adminFlags are flags that give each admin of some trees an account of the same name. Names that a shell could take
// for more than a word are left out, because the text is made to be pasted.
func (f *forest) adminFlags(trees []string) string {
	names := map[string]bool{}
	for _, tree := range trees {
		for _, name := range f.trees[tree].allAdmins() {
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

// allAdmins are the admins of the tree and its nodes, sorted.
func (t *tree) allAdmins() []string {
	var list []string
	t.root.walk(func(n *node) bool {
		list = append(list, n.spec.Admins...)
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

// governedTrees are the trees that name admins, sorted.
func (f *forest) governedTrees() []string {
	var list []string
	for name, t := range f.trees {
		if t.governed {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// permitAccess refuses a command of the book that its caller may not give.
func (g guard) permitAccess(c access.Command) *quota.Error {
	switch c := c.(type) {
	case access.Bootstrap:
		return nil // its secret decides
	case access.RotateToken:
		if id, shown := g.caller.who.Token(); shown && id == c.Old {
			return nil // the new token can do no more, and lives no longer
		}
	case access.CreateAccount, access.UpdateAccount, access.DeleteAccount, access.CreateToken, access.RevokeToken,
		access.Refuse, access.Unrefuse, access.SetMode, access.ReplaceSection:
	}
	return g.needCluster(access.AccessManage)
}
