package permit

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/configure"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// CommitPlan carries out a plan and remembers it in the history.
// A dry run answers the present revision, because the change would make the next one, and the effects of the change.
func CommitPlan(p configure.Planner, meta quota.ChangeMeta, checked configure.Plan, m state.Mode) state.Outcome {
	if out, settled := judgeChange(p, meta, checked); settled {
		return out
	}
	answer := quota.Configuration{Changes: checked.Changes, Over: checked.Over}
	switch {
	case m == state.DryRun:
		answer.Effects = checked.Effects()
	case len(checked.Changes) > 0:
		p.Install(meta, checked)
	}
	answer.Revision = p.State.History.Revision
	return state.Outcome{Configuration: &answer}
}

// judgeChange answers a repeated request with its first result, and refuses a wrong expected revision, an invalid plan,
// a missing reason, and a caller without the rights.
func judgeChange(p configure.Planner, m quota.ChangeMeta, checked configure.Plan) (state.Outcome, bool) {
	if out, known := configure.CheckMeta(&p.State.History, m, checked.At); known {
		return out, true
	}
	if checked.Refused != nil {
		return state.Outcome{Refused: checked.Refused}, true
	}
	if err := p.CheckReason(m.Reason, checked); err != nil {
		return state.Outcome{Refused: err}, true
	}
	if err := NewGuard(p.State).permitPlan(checked); err != nil {
		return state.Outcome{Refused: err}, true
	}
	return state.Outcome{}, false
}

// PlanApply checks an ApplyTrees, of whole trees or of one subtree.
func PlanApply(p configure.Planner, c quota.ApplyTrees) configure.Plan {
	if c.At == nil {
		return p.PlanTrees(c)
	}
	checked := planSubtree(p, c)
	checked.At = c.At
	return checked
}

// planSubtree checks the change of a whole tree in which the rest is as it is now, so every rule, right and difference
// is that of a change of the tree.
func planSubtree(p configure.Planner, c quota.ApplyTrees) configure.Plan {
	if err := configure.CheckSubtreeCommand(c); err != nil {
		return configure.RefusedPlan(err)
	}
	t := p.State.Forest.Trees[c.At.Tree]
	if t == nil {
		return configure.RefusedPlan(
			quota.Errorf(quota.NotFound, "subtree.tree", "there is no tree %q", quota.Clip(c.At.Tree)))
	}
	if c.At.Node == "" {
		return p.PlanTrees(quota.ApplyTrees{Trees: c.Trees})
	}
	top, err := configure.ConfiguredNode(t, c.At.Node, "subtree.node")
	if err != nil {
		return configure.RefusedPlan(err)
	}
	part := configure.SubtreeText{Tree: t, At: *c.At, Spec: c.Trees[0]}
	if err := part.Check(); err != nil {
		return configure.RefusedPlan(err)
	}
	if err := NewGuard(p.State).permitTop(top, part); err != nil {
		return configure.RefusedPlan(err)
	}
	whole, shift := part.WholeTree()
	checked := p.PlanTrees(quota.ApplyTrees{Trees: []quota.TreeSpec{whole}})
	if checked.Refused != nil {
		checked.Refused = configure.ShiftNodeField(checked.Refused, shift)
	}
	return checked
}

// permitTop asks for what the differences of the subtree's own node need before the policy of its parent is asked about
// them, because a refusal by that policy would tell of limits which the caller may not see.
func (g Guard) permitTop(top *state.Node, part configure.SubtreeText) *quota.Error {
	if g.Caller.Rights == nil {
		return nil
	}
	i := slices.IndexFunc(part.Spec.Nodes, func(n quota.NodeSpec) bool { return n.Path == top.Path })
	d := configure.DifferIn(top.Tree)
	d.Spec(top.Path, top.Spec, &part.Spec.Nodes[i], true)
	for _, c := range d.Changes {
		err := g.Forbid(g.permitDifference(c, func(quota.Change) configure.ChangedNode {
			return configure.ChangedNode{Was: top, Above: top.Parent}
		}))
		if err != nil {
			return err
		}
	}
	return nil
}
