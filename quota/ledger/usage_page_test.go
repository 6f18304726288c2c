package ledger_test

import (
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestUsageAgainstOracle compares all pages of a query with what an oracle selects from the whole list.
func TestUsageAgainstOracle(t *testing.T) {
	t.Parallel()
	verify.Check(t, usageAgainstOracle)
}

func usageAgainstOracle(t *rapid.T) {
	w := &warned{ledger: ledger.New(quota.DefaultBounds()), history: map[crossingKey][]sample{}}
	w.apply(t, w.tree(t))
	for range 10 {
		w.apply(t, w.command(t))
	}
	q := quota.UsageQuery{
		Tree: "t", Node: rapid.SampledFrom([]string{"", "a"}).Draw(t, "node"), Subtree: quotatest.Die(t, 6, "one") > 0,
		MaxDepth: quotatest.Die(t, 3, "depth"), FullestFirst: rapid.Bool().Draw(t, "fullest"),
		AtLeastPercent: rapid.SampledFrom([]int{0, 1, 50, 99, 100, 101}).Draw(t, "percent"), Max: 100,
	}
	all, refused := w.ledger.Reader().Usage(quota.UsageQuery{Tree: "t", Node: q.Node, Subtree: q.Subtree, Max: 100})
	if refused != nil {
		t.Fatal(refused)
	}
	q.Max = 1 + quotatest.Die(t, 3, "page")
	var got []quota.NodeUsage
	for range len(all.Nodes) + 1 {
		page, refused := w.ledger.Reader().Usage(q)
		if refused != nil || len(page.Nodes) > q.Max {
			t.Fatalf("%d nodes, %v", len(page.Nodes), refused)
		}
		got = append(got, page.Nodes...)
		if q.After = page.Next; q.After == nil {
			break
		}
	}
	if diff := cmp.Diff(pathsOf(selectUsage(all.Nodes, q)), pathsOf(got)); diff != "" {
		t.Fatalf("%+v (-want +got):\n%s", q, diff)
	}
}

// selectUsage is the design in words: leave out what is too deep or not full enough, then sort, where the list order is
// that of paths.
func selectUsage(all []quota.NodeUsage, q quota.UsageQuery) []quota.NodeUsage {
	var list []quota.NodeUsage
	for _, n := range all {
		depth := len(strings.FieldsFunc(n.Path, isSlash)) - len(strings.FieldsFunc(q.Node, isSlash))
		share := largestShare(n)
		tooDeep := q.MaxDepth > 0 && depth > q.MaxDepth
		if tooDeep || share.Cmp(big.NewRat(int64(q.AtLeastPercent), 100)) < 0 {
			continue
		}
		list = append(list, n)
	}
	if q.FullestFirst {
		slices.SortStableFunc(list, func(a, b quota.NodeUsage) int { return largestShare(b).Cmp(largestShare(a)) })
	}
	return list
}

func isSlash(c rune) bool { return c == '/' }

// largestShare is the largest used part of a limit, where any use of a limit of 0 is more than all others.
func largestShare(n quota.NodeUsage) *big.Rat {
	most := new(big.Rat)
	for _, r := range n.Resources {
		share := new(big.Rat)
		switch limit := r.Effective; {
		case limit.Kind != quota.Limited && limit.Kind != quota.Advisory || r.Subtree == 0:
		case limit.Amount == 0:
			share.SetInt64(int64(quota.MaxAmount))
		default:
			share.SetFrac64(int64(r.Subtree), int64(limit.Amount))
		}
		if share.Cmp(most) > 0 {
			most = share
		}
	}
	return most
}
