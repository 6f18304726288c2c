package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// onDemandKeys are the keys that only items on demand may have.
var onDemandKeys = []string{"lifespan", "max", "min", "removed", "retired"}

func (p *parser) itemSpec(resource string, v value) *quoratev1.ItemSpec {
	what := fmt.Sprintf("items of %q", resource)
	sections := p.knownSections(what, v, itemsMap)
	if v.kind != kindMap {
		return nil
	}
	spec := &quoratev1.ItemSpec{
		Names:      p.itemNames(what, sections),
		Min:        p.itemCount(what, "min", sections),
		Max:        p.itemCount(what, "max", sections),
		LifespanMs: p.parseSpan(what, "lifespan", sections, maxLifespan),
		State:      p.parseState(what, "state", sections),
		Released:   p.parseState(what, "released", sections),
		Expired:    p.parseState(what, "expired", sections),
		TtlMs:      p.parseSpan(what, "ttl", sections, maxTTL),
		Turns:      p.parseTurns(what, sections),
		Queueing:   p.parseQueueing(what, sections),
		Retired:    p.parseState(what, "retired", sections),
		Removed:    p.parseState(what, "removed", sections),
	}
	p.checkStock(what, v, sections, spec)
	return spec
}

// checkStock requires that items are either named or made on demand.
func (p *parser) checkStock(what string, v value, sections map[string]value, spec *quoratev1.ItemSpec) {
	if _, named := sections["names"]; named {
		for _, key := range onDemandKeys {
			if at, found := sections[key]; found {
				p.addProblem(
					at.line,
					at.column,
					"%s are named, so they are not made on demand: leave %s out, or the names",
					what,
					key,
				)
			}
		}
		return
	}
	most, limited := sections["max"]
	switch {
	case !limited:
		p.addProblem(v.line, v.column, "%s: say which there are, names: [a, b], or how many are made on demand, max: 3",
			what)
	case spec.GetMax() > 0 && spec.GetMin() > spec.GetMax():
		p.addProblem(most.line, most.column, "%s: min, %d, is more than max, %d", what, spec.GetMin(), spec.GetMax())
	}
	p.checkRetirement(what, v, sections)
}

// checkRetirement requires that both states of items that are to be removed are named, or neither.
func (p *parser) checkRetirement(what string, v value, sections map[string]value) {
	retired, retires := sections["retired"]
	removed, removes := sections["removed"]
	switch {
	case retires != removes:
		p.addProblem(v.line, v.column, "%s: retired, the state of items that are too many or too old, and removed, the "+
			"state in which a cleaner leaves them to be removed, come together: write both, such as retired: toBeDeleted "+
			"and removed: tombstone, or neither", what)
	case retires && retired.text == removed.text:
		p.addProblem(removed.line, removed.column, "%s: retired and removed are both %q: name two states", what,
			removed.text)
	}
}

func (p *parser) itemNames(what string, sections map[string]value) []string {
	v, found := sections["names"]
	if found && v.kind == kindList && len(v.items) == 0 {
		p.addProblem(
			v.line,
			v.column,
			"%s: the list of names is empty: name at least one, or write max: 3 to make them on demand",
			what,
		)
	}
	list := v
	list.items = nil
	for _, item := range v.items {
		if item.kind == kindText && !itemName().MatchString(item.text) {
			p.addProblem(item.line, item.column,
				"%s: %.64q is not a valid item name: use 1 to %d letters, digits and _ . @ + -, "+
					"beginning with a letter, digit or _", what, item.text, maxItemName)
			continue
		}
		list.items = append(list.items, item)
	}
	return slices.Sorted(slices.Values(p.parseNames(what, "names", map[string]value{"names": list}, maxItems)))
}

func (p *parser) itemCount(what, key string, sections map[string]value) int64 {
	v, found := sections[key]
	if !found {
		return 0
	}
	count, err := strconv.ParseInt(v.text, 10, 64)
	fewest := int64(0)
	if key == "max" {
		fewest = 1
	}
	if v.kind != kindText || err != nil || count < fewest || count > maxItems ||
		strconv.FormatInt(count, 10) != v.text {
		p.addProblem(
			v.line,
			v.column,
			"%s of %s is a number from %d to %d, not %s",
			key,
			what,
			fewest,
			maxItems,
			v.describeValue(),
		)
		return 0
	}
	return count
}

func (p *parser) parseState(what, key string, sections map[string]value) string {
	v, found := sections[key]
	p.checkPlain(key+" of "+what, v)
	if found && (v.kind != kindText || v.text == "" || len(v.text) > maxWord) {
		p.addProblem(
			v.line,
			v.column,
			"%s of %s is the word for a state, such as free or dirty, of up to %d bytes",
			key,
			what,
			maxWord,
		)
		return ""
	}
	return v.text
}

// parseTurns reads the timed changes of state, at most one from each state, sorted by that state.
func (p *parser) parseTurns(what string, sections map[string]value) []*quoratev1.ItemTurn {
	var parsed []*quoratev1.ItemTurn
	lines := map[string]int{}
	for i, v := range p.listItems("turns", sections["turns"], maxTurns) {
		place := fmt.Sprintf("turn %d of %s", i+1, what)
		parts := p.knownSections(place, v, turnMap)
		if v.kind != kindMap {
			continue
		}
		turn := &quoratev1.ItemTurn{
			State:    p.parseState(place, "state", parts),
			NewState: p.parseState(place, "new-state", parts),
			AfterMs:  p.parseSpan(place, "after", parts, maxLifespan),
		}
		for _, key := range []string{"state", "new-state", "after"} {
			if _, found := parts[key]; !found {
				p.addProblem(v.line, v.column, "%s has no %q: write {state: dirty, new-state: free, after: 5m}", place, key)
			}
		}
		if line, again := lines[turn.GetState()]; again {
			p.addProblem(v.line, v.column, "%s: there is already a turn from %q, in line %d", place, turn.GetState(), line)
		}
		if turn.GetState() != "" && turn.GetState() == turn.GetNewState() {
			p.addProblem(v.line, v.column, "%s leads from %q to itself: name another state", place, turn.GetState())
		}
		lines[turn.GetState()] = v.line
		parsed = append(parsed, turn)
	}
	slices.SortFunc(parsed, byState)
	return parsed
}

func byState(a, b *quoratev1.ItemTurn) int { return cmp.Compare(a.GetState(), b.GetState()) }

func itemsValue(spec *quoratev1.ItemSpec) value {
	v := value{kind: kindMap}
	v.addFilled("names", namesValue(slices.Sorted(slices.Values(spec.GetNames()))))
	v.addCount("min", spec.GetMin())
	v.addCount("max", spec.GetMax())
	v.addSpan("lifespan", spec.GetLifespanMs())
	v.addText("state", spec.GetState())
	v.addText("released", spec.GetReleased())
	v.addText("expired", spec.GetExpired())
	v.addText("retired", spec.GetRetired())
	v.addText("removed", spec.GetRemoved())
	v.addSpan("ttl", spec.GetTtlMs())
	turns := value{kind: kindList}
	for _, t := range slices.SortedFunc(slices.Values(spec.GetTurns()), byState) {
		turn := value{kind: kindMap}
		turn.addText("state", t.GetState())
		turn.addText("new-state", t.GetNewState())
		turn.addSpan("after", t.GetAfterMs())
		turns.items = append(turns.items, turn)
	}
	v.addFilled("turns", turns)
	v.addText("queueing", queueings[spec.GetQueueing()])
	return v
}
