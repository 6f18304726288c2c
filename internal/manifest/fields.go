package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

func (p *parser) parseWord(what, key string, sections map[string]value) string {
	v, found := sections[key]
	p.checkPlain(key+" of "+what, v)
	if found && (v.kind != kindText || v.text == "" || len(v.text) > maxWord) {
		p.addProblem(v.line, v.column, "the %s of %s must be a name of at most %d bytes", key, what, maxWord)
	}
	return v.text
}

func (p *parser) parseFlag(what, key string, sections map[string]value) bool {
	v, found := sections[key]
	if found && (v.kind != kindText || v.text != trueWord && v.text != falseWord) {
		p.addProblem(v.line, v.column, "%s of %s is true or false, not %s", key, what, v.describeValue())
	}
	return v.text == trueWord
}

// parseApplications reads the most applications that may run: 0 is none at all, and absent or unlimited any number.
func (p *parser) parseApplications(what string, sections map[string]value) *quoratev1.Limit {
	v, found := sections["applications"]
	if !found {
		return nil
	}
	limit, err := parseBound(v, quoratev1.Unit_UNIT_COUNT)
	if err != nil {
		p.addProblem(v.line, v.column, "%s, applications: %v", what, err)
	}
	return limit
}

// parseBound reads a limit that is a quantity or unlimited, that of a user, a group, or a number of applications.
func parseBound(v value, unit quoratev1.Unit) (*quoratev1.Limit, error) {
	limit, err := parseSetLimit(v, unit)
	if err == nil && !isBound(limit) {
		return nil, fmt.Errorf("it is a quantity or the word %s, not %s", unlimitedWord, v.describeValue())
	}
	return limit, err
}

// isBound is true for the limits that users, groups and numbers of applications may have.
func isBound(limit *quoratev1.Limit) bool {
	switch limit.GetValue().(type) {
	case *quoratev1.Limit_Amount, *quoratev1.Limit_Unlimited:
		return true
	}
	return false
}

// Bound is the amount of the limit of a user, a group, or a number of applications; false if there is none.
func Bound(limit *quoratev1.Limit) (amount int64, isLimited bool) {
	v, isLimited := limit.GetValue().(*quoratev1.Limit_Amount)
	if !isLimited {
		return 0, false
	}
	return v.Amount, true
}

// Bounds are the amounts of such limits by resource, without those that are none.
func Bounds(limits map[string]*quoratev1.Limit) map[string]int64 {
	amounts := make(map[string]int64, len(limits))
	for resource, limit := range limits {
		if amount, isLimited := Bound(limit); isLimited {
			amounts[resource] = amount
		}
	}
	return amounts
}

// maxApprovals is the most approvals that a tree may want.
const maxApprovals = 10

// parseApprovals refuses zero, because a request could then never be approved.
func (p *parser) parseApprovals(what string, sections map[string]value) int32 {
	v, found := sections["approvals"]
	if !found {
		return 0
	}
	if v.kind != kindText {
		p.addProblem(v.line, v.column, "approvals of %s must be a number, not %s", what, v.describeValue())
		return 0
	}
	wanted, err := strconv.ParseInt(v.text, 10, 32)
	if err != nil || wanted < 1 || wanted > maxApprovals {
		p.addProblem(v.line, v.column, "%s, approvals: %.64q is not a number from 1 to %d", what, v.text, maxApprovals)
		return 0
	}
	return int32(wanted)
}

func (p *parser) parseLimits(
	what, key string, sections map[string]value, units map[string]quoratev1.Unit,
) map[string]*quoratev1.Limit {
	var parsed map[string]*quoratev1.Limit
	for _, e := range p.registeredEntries(what, key, sections, units) {
		limit, err := parseSetLimit(e.value, units[e.key])
		if err != nil {
			p.addProblem(e.value.line, e.value.column, "%s, %s of %q: %v", what, singular[key], e.key, err)
			continue
		}
		if parsed == nil {
			parsed = map[string]*quoratev1.Limit{}
		}
		parsed[e.key] = limit
	}
	return parsed
}

// singular is what errors call an entry of a section of limits.
var singular = map[string]string{"limits": "limit", "defaults": "default", "borrow": "borrowing", "lend": "lending"}

// registeredEntries requires that the keys are resources of the tree.
func (p *parser) registeredEntries(
	what, key string,
	sections map[string]value,
	units map[string]quoratev1.Unit,
) []entry {
	var known []entry
	for _, e := range p.mapEntries(key, sections[key], maxResources) {
		if _, found := units[e.key]; found {
			known = append(known, e)
			continue
		}
		p.addProblem(e.line, e.column, "%s limits %q, which its tree does not register; it has %s",
			what, e.key, strings.Join(slices.Sorted(maps.Keys(units)), ", "))
	}
	return known
}

func parseSetLimit(v value, unit quoratev1.Unit) (*quoratev1.Limit, error) {
	if v.kind != kindText {
		return nil, fmt.Errorf("the value must be a quantity or the word %s, not %s", unlimitedWord, v.describeValue())
	}
	if v.text == unsetWord {
		return nil, fmt.Errorf("leave the line out: a resource without a limit is unset")
	}
	return ParseLimit(v.text, unit)
}

func (p *parser) parseLabels(what string, labels value) map[string]string {
	var parsed map[string]string
	for _, e := range p.mapEntries("labels", labels, maxLabels) {
		switch {
		case e.key == "" || len(e.key) > maxLabelKey:
			p.addProblem(
				e.line,
				e.column,
				"the name of a label of %s has 1 to %d bytes, this one %d",
				what,
				maxLabelKey,
				len(e.key),
			)
		case e.value.kind != kindText || len(e.value.text) > maxText:
			p.addProblem(e.value.line, e.value.column, "label %q of %s must be a text of at most %d bytes",
				e.key, what, maxText)
		default:
			p.checkPlain(fmt.Sprintf("label %q of %s", e.key, what), e.value)
			if parsed == nil {
				parsed = map[string]string{}
			}
			parsed[e.key] = e.value.text
		}
	}
	return parsed
}

// parseNames keeps the order of the list.
func (p *parser) parseNames(what, key string, sections map[string]value, most int) []string {
	var parsed []string
	lines := map[string]int{}
	for _, v := range p.listItems(key, sections[key], most) {
		if v.kind != kindText || v.text == "" || len(v.text) > maxText {
			p.addProblem(v.line, v.column, "%s of %s: a name has 1 to %d bytes", key, what, maxText)
			continue
		}
		p.checkPlain(key+" of "+what, v)
		if line, again := lines[v.text]; again {
			p.addProblem(v.line, v.column, "%s of %s: %q is given twice; the first is in line %d", key,
				what, v.text, line)
			continue
		}
		lines[v.text] = v.line
		parsed = append(parsed, v.text)
	}
	return parsed
}

// parseMoves reads the moves of nodes in the order of the text, because a move may start where an earlier one ended.
func (p *parser) parseMoves(moves value) []*quoratev1.NodeMove {
	var parsed []*quoratev1.NodeMove
	for _, e := range p.mapEntries("moves", moves, maxMoves) {
		if !isPath(e.key) {
			p.failPath(e.line, e.column, e.key)
		}
		switch v := e.value; {
		case v.kind != kindText:
			p.addProblem(v.line, v.column, "%q moves to a path, such as new/path, not to %s", e.key, v.describeValue())
		case !isPath(v.text):
			p.failPath(v.line, v.column, v.text)
		default:
			p.checkPlain("moves", v)
			parsed = append(parsed, &quoratev1.NodeMove{Node: e.key, NewNode: v.text})
		}
	}
	return parsed
}

func isPath(text string) bool {
	names := strings.Split(text, "/")
	bad := func(name string) bool { return !nodeName().MatchString(name) }
	return len(names) <= maxDepth && !slices.ContainsFunc(names, bad)
}

func (p *parser) failPath(line, column int, path string) {
	p.addProblem(line, column, "moves: %q is not a path of a node: up to %d names, joined by slashes, "+
		"from below the root",
		path, maxDepth)
}
