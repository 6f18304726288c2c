package configure

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// newSizes are the sizes of the ledger after a change, and by how many bytes it grows.
type newSizes struct {
	trees, nodes, bindings int
	growth                 int64
}

func (n *newSizes) add(s *treeTransition) {
	n.trees += count(s.draft) - count(s.old)
	n.nodes += SizeOfTree(s.draft) - SizeOfTree(s.old)
	n.bindings += countDraftBindings(s.draft) - countDraftBindings(s.old)
	n.growth += s.draft.Bytes() - s.old.Bytes()
}

func (p Planner) checkSizes(after newSizes, steps []*treeTransition, section accessPlan) *quota.Error {
	switch {
	case after.trees > p.State.Bounds.Trees:
		return quota.Errorf(quota.Full, "trees", "the ledger would have %d trees; at most %d are allowed", after.trees,
			p.State.Bounds.Trees)
	case after.nodes > p.State.Bounds.Nodes:
		return quota.Errorf(quota.Full, "trees", "the ledger would have %d nodes; at most %d are allowed", after.nodes,
			p.State.Bounds.Nodes)
	}
	if err := p.checkBindingRoom(after.bindings, section); err != nil {
		return err
	}
	if err := checkItemRoom(&p.State.Forest, steps); err != nil {
		return err
	}
	return p.State.CheckTreeGrowth(after.growth)
}

func count(t *state.Tree) int {
	if t == nil {
		return 0
	}
	return 1
}

// SizeOfTree is the number of nodes; that of no tree is zero.
func SizeOfTree(t *state.Tree) int {
	if t == nil {
		return 0
	}
	return len(t.ByPath)
}

func checkAutoApprove(a quota.AutoApprove, field string) *quota.Error {
	switch {
	case a == quota.AutoApprove{}:
		return nil
	case a.AtMost < 1 || a.AtMost > quota.MaxAutoApprovePercent:
		return quota.Errorf(quota.Invalid, field+".at_most_percent",
			"a rule may raise limits by 1 to %d percent, not %d", quota.MaxAutoApprovePercent, a.AtMost)
	case a.Every < quota.MinAutoApproveEvery || a.Every > quota.MaxAutoApproveEvery:
		return quota.Errorf(quota.Invalid, field+".every_ms",
			"a rule must wait %d to %d ms between two requests of one node, not %d", quota.MinAutoApproveEvery,
			quota.MaxAutoApproveEvery, a.Every)
	}
	return nil
}

func autoApproveText(a quota.AutoApprove) string {
	if a == (quota.AutoApprove{}) {
		return ""
	}
	text := fmt.Sprintf("at most %d%% every %s", a.AtMost, DaysText(a.Every))
	if a.WithinHeadroom {
		text += " within headroom"
	}
	return text
}

const (
	OneHour quota.Span = 60 * 60 * 1000
	oneDay             = 24 * OneHour
)

// DaysText is a span with its days, such as 30d or 1d6h.
func DaysText(s quota.Span) string {
	var text strings.Builder
	if days := s / oneDay; days > 0 {
		text.WriteString(strconv.FormatInt(int64(days), 10) + "d")
	}
	text.WriteString(spanText(s % oneDay))
	return text.String()
}
