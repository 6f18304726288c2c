package rest

import (
	"context"
	"fmt"
	"math"
	"net/http"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// maxTold is the largest limit of Keystone. It stands for unlimited too, because oslo.limit compares -1 like any other
// number and so denies everything.
const maxTold = math.MaxInt32

// usagePage is how many nodes a call of the API may bring.
const usagePage = 1000

type share struct {
	resource resourceEntry
	amount   int64  // 0 to maxTold
	why      string // for people
}

// tell returns what a project is told to keep to. The project counts its use itself and compares it with this number.
//
// Where the limits of children add up to at most that of their parent at every node above, as under the policy strict,
// it is the node's own share: its limit less those of its children. The shares at and below a node add up to at most
// its limit, so no limit is exceeded however all projects use theirs. Elsewhere, and in trees whose use is counted in
// the ledger, it is what the node holds in the ledger and its headroom: with nothing in the ledger the least limit at
// the node and above, which several projects under one limit can exceed together.
func (s *server) tell(ctx context.Context, v *view, t *treeEntry, n *nodeEntry, resource string) ([]share, error) {
	node, children, err := s.readFamily(ctx, v, t, n)
	if err != nil {
		return nil, err
	}
	usage := map[string]*quoratev1.ResourceUsage{}
	for _, u := range node.GetResources() {
		usage[u.GetResource()] = u
	}
	var shares []share
	for _, r := range t.resources {
		if resource != "" && r.keystoneName != resource {
			continue
		}
		u := usage[r.name]
		if u == nil {
			return nil, mayNotRead(t, n.path)
		}
		shares = append(shares, tellResource(t, n, node, u, children[r.name], r))
	}
	return shares, nil
}

func tellResource(
	t *treeEntry, n *nodeEntry, node *quoratev1.NodeUsage, u *quoratev1.ResourceUsage, children childLimits,
	r resourceEntry,
) share {
	if node.GetCordon() != nil {
		return share{r, 0, "the node is on hold"}
	}
	reach, why := int64(maxTold), "unlimited"
	if u.Headroom != nil {
		reach = addUp(u.GetOwn(), u.GetHeadroom())
		why = fmt.Sprintf("own use %d and headroom %d in the ledger", u.GetOwn(), u.GetHeadroom())
		if reach > maxTold {
			reach, why = maxTold, fmt.Sprintf("%s, more than Keystone's largest limit", why)
		}
	}
	limit, limited := amountOf(u.GetEffective())
	if !n.boundsSum || t.countsInLedger || !limited {
		return share{r, reach, why}
	}
	own := int64(0)
	if !children.unbounded {
		own = max(0, limit-children.sum)
	}
	if own <= reach {
		return share{r, own, fmt.Sprintf("own share: limit %d less %d of its children", limit, children.sum)}
	}
	return share{r, reach, why}
}

// addUp stops at math.MaxInt64. The amounts are not negative.
func addUp(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// amountOf is the amount of a limit, and false if it denies nothing.
func amountOf(l *quoratev1.Limit) (int64, bool) {
	amount, limited := l.GetValue().(*quoratev1.Limit_Amount)
	if !limited {
		return 0, false
	}
	return amount.Amount, true
}

// childLimits are the limits of a node's children for one resource, added up; unbounded if one has none.
type childLimits struct {
	sum       int64
	unbounded bool
}

// readFamily reads the usage of a node, and the limits of its children by resource.
func (s *server) readFamily(
	ctx context.Context, v *view, t *treeEntry, n *nodeEntry,
) (*quoratev1.NodeUsage, map[string]childLimits, error) {
	subtree := n.hasChildren
	for {
		var node *quoratev1.NodeUsage
		children := map[string]childLimits{}
		err := s.wholeUsage(ctx, v, t, n.path, subtree, func(u *quoratev1.NodeUsage) {
			if u.GetNode() == n.path {
				node = u
				return
			}
			for _, r := range u.GetResources() {
				children[r.GetResource()] = children[r.GetResource()].with(r.GetEffective())
			}
		})
		switch {
		case err != nil:
			return nil, nil, err
		case node == nil:
			return nil, nil, mayNotRead(t, n.path)
		case subtree || node.GetChildCount() == 0:
			return node, children, nil
		}
		subtree = true // it has got children since the directory was read
	}
}

func (c childLimits) with(limit *quoratev1.Limit) childLimits {
	amount, limited := amountOf(limit)
	return childLimits{addUp(c.sum, amount), c.unbounded || !limited}
}

// eachUsage reads all pages, as far as the caller may read usage.
func (s *server) eachUsage(
	ctx context.Context, v *view, r *quoratev1.GetUsageRequest, each func(*quoratev1.NodeUsage),
) error {
	_, err := s.readUsage(ctx, v, r, each)
	return err
}

// wholeUsage is eachUsage for callers who may read usage at the node itself, and an error for all others. Those who may
// read usage further down only would see a part of its children.
func (s *server) wholeUsage(
	ctx context.Context, v *view, t *treeEntry, path string, subtree bool, each func(*quoratev1.NodeUsage),
) error {
	r := &quoratev1.GetUsageRequest{Tree: t.name, Node: path, Subtree: subtree}
	if subtree {
		r.MaxDepth = 1
	}
	filtered, err := s.readUsage(ctx, v, r, each)
	if filtered || isHidden(err) {
		return mayNotRead(t, path)
	}
	return err
}

// readUsage also reports whether the pages have only what the caller sees.
func (s *server) readUsage(
	ctx context.Context, v *view, r *quoratev1.GetUsageRequest, each func(*quoratev1.NodeUsage),
) (filtered bool, err error) {
	r.PageSize, r.Read = usagePage, atIndex(v.index)
	for {
		page, err := s.trees.GetUsage(ctx, r)
		if err != nil {
			return false, err
		}
		filtered = filtered || page.GetFiltered()
		for _, u := range page.GetNodes() {
			each(u)
		}
		if page.GetNextPageToken() == "" {
			return filtered, nil
		}
		r.PageToken = page.GetNextPageToken()
	}
}

// mayNotRead says what a caller lacks. It is the same whether the node exists or not.
func mayNotRead(t *treeEntry, path string) error {
	place := t.name
	if path != "" {
		place += ":" + path
	}
	return newFailure(http.StatusForbidden, "%s: the token lacks the right usage.read at %s", mayNot, place)
}
