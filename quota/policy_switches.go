package quota

import (
	"fmt"
	"strings"
)

// Switches is a policy put together from independent choices. The presets are values of it.
type Switches struct {
	PolicyName string
	// UnsetIs is what an unset limit means where no ancestor gives a default: NoLimit(), or AtMost(0) (CERN: a new child
	// starts at zero).
	UnsetIs Limit
	// Sum bounds the sum of the children's limits.
	Sum SumRule
	// ChildWithinParent bounds each limit that a child has of its own by its parent's. An unset one is bounded by the parent
	// anyway, whatever the default says (Keystone: the lesser of default and parent).
	ChildWithinParent bool
	// ForUnknown, AtLeavesOnly, Borrow, Preempt and SetBy answer the policy's questions of the same meaning.
	ForUnknown   UnknownRule
	AtLeavesOnly bool
	Borrow       Borrowing
	Preempt      Preemption
	SetBy        Setters
}

// SumRule says how the children's limits add up against their parent's.
type SumRule uint8

// The closed list of rules. The sources differ on whether a node's own use counts; see docs/adr/0013.
const (
	// SumFree allows overbooking.
	SumFree SumRule = iota
	// SumWithinLimit: at most the parent's limit (CERN).
	SumWithinLimit
	// SumWithinLimitLessOwn: at most the parent's limit less what the parent holds itself (Nova's nested quota).
	SumWithinLimitLessOwn
)

// Name is the policy's name.
func (s Switches) Name() string { return s.PolicyName }

// Unknown is the switch ForUnknown.
func (s Switches) Unknown() UnknownRule { return s.ForUnknown }

// LeavesOnly is the switch AtLeavesOnly.
func (s Switches) LeavesOnly() bool { return s.AtLeavesOnly }

// Borrowing is the switch Borrow.
func (s Switches) Borrowing() Borrowing { return s.Borrow }

// Preemption is the switch Preempt.
func (s Switches) Preemption() Preemption { return s.Preempt }

// Setters is the switch SetBy.
func (s Switches) Setters() Setters { return s.SetBy }

// Effective puts the default, or else UnsetIs, for unset.
func (s Switches) Effective(set, fallback Limit) Limit {
	switch {
	case set.Kind != Unset:
		return set
	case fallback.Kind != Unset:
		return fallback
	}
	return s.UnsetIs
}

// CheckFamily applies ChildWithinParent and Sum. Under a node without limit, children are free.
func (s Switches) CheckFamily(f Family) string {
	if f.Limit.Kind == Unlimited {
		return ""
	}
	if s.ChildWithinParent {
		if text := checkChildren(f); text != "" {
			return text
		}
	}
	return s.checkSum(f)
}

// checkChildren names every child whose limit is above the node's, as far as maxText allows.
func checkChildren(f Family) string {
	var above []string
	length, hidden := 0, 0
	for _, c := range f.Children {
		if !c.Set || c.Limit.Kind != Unlimited && c.Limit.Amount <= f.Limit.Amount {
			continue
		}
		text := fmt.Sprintf("%s is %s", c.Name, c.Limit)
		if length += len(text); length > maxText {
			hidden++
			continue
		}
		above = append(above, text)
	}
	switch {
	case len(above) == 0:
		return ""
	case hidden > 0:
		above = append(above, fmt.Sprintf("and so on for %d more", hidden))
	case len(above) == 1:
		return fmt.Sprintf("the limit of its child %s, above its own %s: lower the child's, or raise its own first", above[0], f.Limit)
	}
	return fmt.Sprintf("the limits of its children (%s) are above its own %s: lower the children's, or raise its own first", strings.Join(above, ", "), f.Limit)
}

func (s Switches) checkSum(f Family) string {
	if s.Sum == SumFree {
		return ""
	}
	room, words := f.Limit.Amount, fmt.Sprintf("its limit of %s", f.Limit)
	if s.Sum == SumWithinLimitLessOwn {
		room, words = max(0, room-f.Own), fmt.Sprintf("its limit of %s less its own use of %d", f.Limit, f.Own)
	}
	var sum Amount
	for _, c := range f.Children {
		if c.Limit.Kind == Unlimited {
			return fmt.Sprintf("its child %s is unlimited, but the children's limits must add up to at most %s: give the child an amount", c.Name, words)
		}
		sum = sum.plus(c.Limit.Amount)
	}
	if sum > room {
		return fmt.Sprintf("the limits of its children add up to %d, more than %s: lower one of them, or raise it first", sum, words)
	}
	return ""
}
