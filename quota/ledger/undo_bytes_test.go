package ledger_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// TestCancelKeepsToTheBytes: a heavy victim does not hold again once others have taken its bytes, and does if the
// ledger had as much before.
func TestCancelKeepsToTheBytes(t *testing.T) {
	heavy := []quota.Label{{Key: "k", Value: strings.Repeat("x", 8<<10)}}
	claim := func(id, tree, node string, data []quota.Label) quota.Allocate {
		return quota.Allocate{
			ID: id, Data: data,
			Claims: []quota.Claim{{Tree: tree, Node: node, Amounts: quota.Vector{{Resource: "cpu", Amount: 2}}}},
		}
	}
	limits := func(most quota.Amount) []quota.ResourceLimit {
		return []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(most)}}
	}
	tree := func(name string) quota.TreeSpec {
		return quota.TreeSpec{
			Name: name, Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}},
			Nodes: []quota.NodeSpec{
				{Policy: "borrowing", Limits: limits(2)},
				{Path: "a", Limits: limits(1)},
				{Path: "b", Limits: limits(2)},
			},
		}
	}
	for name, c := range map[string]struct {
		meanwhile string // a tree in which the bytes are taken
		ended     bool
	}{"nothing": {}, "in another tree": {"u", true}, "in the tree": {"t", true}} {
		t.Run(name, func(t *testing.T) {
			b := quota.DefaultBounds()
			b.LiveBytes = 24 << 10
			l := ledger.New(b)
			do := func(c quota.Command) {
				if out := l.Apply(quota.Stamp{}, c); out.Refused != nil || out.Decision != nil &&
					!out.Decision.Granted {
					t.Fatalf("%+v: %v %+v", c, out.Refused, out.Decision)
				}
			}
			do(quota.ApplyTrees{Trees: []quota.TreeSpec{tree("t"), tree("u")}})
			victim, reserved := claim("victim", "t", "a", heavy), claim("reserved", "t", "b", nil)
			reserved.Mode, reserved.ReserveFor = quota.Reserve, 1000
			do(victim)
			do(reserved)
			if c.meanwhile != "" {
				filler := claim("filler", c.meanwhile, "b", heavy)
				filler.Claims[0].Amounts[0].Amount = 0
				do(filler)
			}
			do(quota.Cancel{ID: "reserved"})
			if a, refused := l.Reader().Allocation("victim"); refused != nil || a.Ended != c.ended {
				t.Errorf("the victim is %+v, %v; want it to have ended: %t", a, refused, c.ended)
			}
		})
	}
}
