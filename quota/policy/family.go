package policy

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/quota"
)

// Family is a node with its children, for one resource. All limits are effective.
type Family struct {
	// Unit is the unit of amounts in texts; bare numbers if zero.
	Unit quota.Unit
	// Limit is the node's limit, Own the amount held at the node itself.
	Limit quota.Limit
	Own   quota.Amount
	// Children are the children's limits by name.
	Children []ChildLimit
}

// ChildLimit is the limit of one child.
type ChildLimit struct {
	Name  string
	Limit quota.Limit
	// Set is true if the child has a limit of its own.
	Set bool
}

// CheckFamily returns the rule that a node and its children violate for one resource, as a sentence with numbers, or
// "". Children of a node without a bound, which is unlimited or has an advisory limit, are unrestricted.
func (p *Policy) CheckFamily(f Family) string {
	if f.Limit.Kind == quota.Limited {
		if p.ChildWithinParent {
			if text := checkChildren(f); text != "" {
				return text
			}
		}
		if text := p.checkSum(f); text != "" {
			return text
		}
	}
	if p.FamilyRule != nil {
		return p.FamilyRule(f)
	}
	return ""
}

// checkChildren lists the children whose limit exceeds the node's, as far as MaxErrorText allows.
func checkChildren(f Family) string {
	var above []string
	length, hidden := 0, 0
	for _, c := range f.Children {
		if !c.Set || c.Limit.Kind != quota.Unlimited && c.Limit.Amount <= f.Limit.Amount {
			continue
		}
		text := fmt.Sprintf("%s is %s", c.Name, c.Limit.In(f.Unit))
		if length += len(text); length > quota.MaxErrorText {
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
		return fmt.Sprintf("the limit of its child %s, above its own %s: lower the child's, or raise its own first",
			above[0], f.Limit.In(f.Unit))
	}
	return fmt.Sprintf("the limits of its children (%s) are above its own %s: lower the children's, or "+
		"raise its own first", strings.Join(above, ", "), f.Limit.In(f.Unit))
}

func unboundedText(l quota.Limit, unit quota.Unit) string {
	if l.Kind == quota.Advisory {
		return l.In(unit) + ", which denies nothing"
	}
	return l.In(unit)
}

func (p *Policy) checkSum(f Family) string {
	if p.Sum == SumUnbounded {
		return ""
	}
	room, words := f.Limit.Amount, "its limit of "+f.Limit.In(f.Unit)
	if p.Sum == SumWithinLimitLessOwn {
		room, words = max(0, room-f.Own), fmt.Sprintf("its limit of %s less its own use of %s",
			f.Limit.In(f.Unit), quota.FormatAmount(f.Own, f.Unit))
	}
	var sum quota.Amount
	for _, c := range f.Children {
		if c.Limit.Kind != quota.Limited {
			return fmt.Sprintf(
				"its child %s is %s, but the children's limits must add up to at most %s: give the "+
					"child an amount", c.Name, unboundedText(c.Limit, f.Unit), words)
		}
		sum = sum.Plus(c.Limit.Amount)
	}
	if sum > room {
		return fmt.Sprintf(
			"the limits of its children add up to %s, more than %s: lower one of them, or raise it first",
			quota.FormatAmount(sum, f.Unit), words)
	}
	return ""
}
