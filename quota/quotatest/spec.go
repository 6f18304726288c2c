package quotatest

import (
	"cmp"
	"math/big"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// FindNode returns the node of a tree at a path, or nil. With the other functions of this file oracles walk over trees;
// they share no code with the ledger that they check.
func FindNode(spec quota.TreeSpec, path string) *quota.NodeSpec {
	for i := range spec.Nodes {
		if spec.Nodes[i].Path == path {
			return &spec.Nodes[i]
		}
	}
	return nil
}

// Above is the path without its last name.
func Above(path string) string {
	names := strings.Split(path, "/")
	return strings.Join(names[:len(names)-1], "/")
}

// Upwards is the path and all above it, up to the root.
func Upwards(path string) []string {
	list := []string{path}
	for path != "" {
		path = Above(path)
		list = append(list, path)
	}
	return list
}

// Below is true if a path is top, or below it.
func Below(path, top string) bool {
	return top == "" || path == top || strings.HasPrefix(path, top+"/")
}

// PolicyOf is the policy of the node at a path: its own or that of the nearest node above; a tree without one is open.
func PolicyOf(spec quota.TreeSpec, path string) string {
	for ; ; path = Above(path) {
		policy := ""
		if n := FindNode(spec, path); n != nil {
			policy = n.Policy
		}
		if policy != "" || path == "" {
			return cmp.Or(policy, "open")
		}
	}
}

// Requested is what claims ask of a resource in the subtree at a path, given where each claim is counted, and whether
// they name the resource there at all.
func Requested(claims []quota.Claim, placed []string, tree, path, resource string) (*big.Int, bool) {
	sum, named := new(big.Int), false
	for i, c := range claims {
		for _, a := range c.Amounts {
			if c.Tree == tree && Below(placed[i], path) && a.Resource == resource {
				sum.Add(sum, big.NewInt(int64(a.Amount)))
				named = true
			}
		}
	}
	return sum, named
}

// PrincipalLimit is the entry that names the principal, or for a user the wildcard's.
func PrincipalLimit(n *quota.NodeSpec, who quota.Holder) *quota.PrincipalLimit {
	var wildcard *quota.PrincipalLimit
	for i := range n.Principals {
		l := &n.Principals[i]
		switch {
		case who.Kind == quota.AUser && slices.Contains(l.Users, who.Name), who.Kind == quota.AGroup &&
			slices.Contains(l.Groups, who.Name):
			return l
		case who.Kind == quota.AUser && slices.Contains(l.Users, quota.Wildcard):
			wildcard = l
		}
	}
	return wildcard
}
