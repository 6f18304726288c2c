package ledger_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// calendarModel is what the design says of scheduled limits, in the plainest way: a list of what is scheduled, the
// configured limits of one resource, and what is held. Everything else is computed anew for each second.
type calendarModel struct {
	now       int // civil time in seconds
	limits    map[string]int
	scheduled []modelSchedule
	held      map[string]modelClaim
}

type modelSchedule struct {
	id, node string
	kind     quota.AdjustmentKind
	amount   int
	windows  [][2]int
	skipped  [][2]int
	recurs   bool
}

type modelClaim struct {
	node   string
	amount int
}

// modelParents are the nodes of the tree with their parents, and modelEnd is the last second that is played.
var modelParents = map[string]string{"a": "", "b": "", "a/x": "a", "a/y": "a"}

const modelEnd = 20

func (m *calendarModel) nodes() []string {
	return append([]string{""}, slices.Sorted(maps.Keys(modelParents))...)
}

// limitAt is the limit in force at a second.
func (m *calendarModel) limitAt(node string, second int) int {
	limit, added, most := m.limits[node], 0, -1
	for _, s := range m.scheduled {
		inForce := slices.ContainsFunc(s.windows, func(w [2]int) bool { return w[0] <= second && second < w[1] })
		switch {
		case s.node != node || !inForce:
		case s.kind == quota.SetLimit:
			limit = s.amount
		case s.kind == quota.AddToLimit:
			added += s.amount
		case most < 0 || s.amount < most:
			most = s.amount
		}
	}
	if limit = max(0, limit+added); most >= 0 {
		limit = min(limit, most)
	}
	return limit
}

// end is the second from which on nothing changes any more.
func (m *calendarModel) end() int {
	last := m.now
	for _, s := range m.scheduled {
		if n := len(s.windows); n > 0 {
			last = max(last, s.windows[n-1][1])
		}
	}
	return last
}

// isLegal is true if at no second the limits of the children of a node add up to more than its own.
func (m *calendarModel) isLegal() bool {
	for second := m.now; second <= m.end(); second++ {
		for _, node := range m.nodes() {
			sum := 0
			for child, parent := range modelParents {
				if parent == node {
					sum += m.limitAt(child, second)
				}
			}
			if sum > m.limitAt(node, second) {
				return false
			}
		}
	}
	return true
}

// fits is true if the claim has room at its node and everywhere above.
func (m *calendarModel) fits(c modelClaim) bool {
	for node := c.node; ; node = modelParents[node] {
		used := 0
		for _, h := range m.held {
			if quota.IsWithin(h.node, node) {
				used += h.amount
			}
		}
		if used+c.amount > m.limitAt(node, m.now) {
			return false
		}
		if node == "" {
			return true
		}
	}
}

// advance forgets the windows that are over, and what has none left.
func (m *calendarModel) advance(seconds int) {
	m.now += seconds
	m.scheduled = slices.DeleteFunc(m.scheduled, func(s modelSchedule) bool {
		return !s.recurs && s.windows[len(s.windows)-1][1] <= m.now
	})
}

// copy is another model that may be changed.
func (m *calendarModel) copy() *calendarModel {
	c := *m
	c.limits, c.scheduled = maps.Clone(m.limits), slices.Clone(m.scheduled)
	return &c
}

// calendarPair is a ledger beside its model. Civil time is 1000 s ahead of the seconds of the model.
type calendarPair struct {
	ledger *ledger.Ledger
	model  *calendarModel
	next   int
}

const modelOffset = 1000

func (p *calendarPair) stamp() quota.Stamp { return quota.Stamp{At: quota.Instant(p.model.now * 1000)} }

func civilSecond(second int) quota.CivilTime { return quota.CivilTime(modelOffset+second) * 1000 }

func newCalendarPair(t *rapid.T) *calendarPair {
	p := &calendarPair{ledger: ledger.New(quota.DefaultBounds()), model: &calendarModel{
		limits: map[string]int{"": 12, "a": 7, "b": 4, "a/x": 3, "a/y": 2}, held: map[string]modelClaim{},
	}}
	spec := quota.TreeSpec{Name: "t", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}}}
	for _, node := range p.model.nodes() {
		n := quota.NodeSpec{Path: node, Limits: cores(quota.Amount(p.model.limits[node]))}
		if node == "" {
			n.Policy = "strict"
		}
		spec.Nodes = append(spec.Nodes, n)
	}
	for _, c := range []quota.Command{
		quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}, quota.SetCivilOffset{Offset: modelOffset * 1000},
	} {
		if out := p.ledger.Apply(p.stamp(), c); out.Refused != nil {
			t.Fatal(out.Refused)
		}
	}
	return p
}

// step gives one random command to both.
func (p *calendarPair) step(t *rapid.T) {
	node := rapid.SampledFrom([]string{"", "a", "a", "a", "a/x", "a/x", "a/y", "b"}).Draw(t, "node")
	switch quotatest.Die(t, 11, "step") {
	case 0, 1, 2, 9, 10:
		p.schedule(t, node)
	case 3:
		p.change(t, quota.SetLimits{}, node)
	case 4:
		p.cancel(t)
	case 5:
		for id := range p.model.held {
			p.ledger.Apply(p.stamp(), quota.Release{ID: id})
			delete(p.model.held, id)
			break
		}
	case 6:
		p.extend(t)
	default:
		p.allocate(t, modelClaim{node, 1 + quotatest.Die(t, 4, "claimed")})
	}
}

func (p *calendarPair) newID() string {
	p.next++
	return fmt.Sprint("i", p.next)
}

// agree compares whether the ledger accepts a change with whether the changed model is legal, and then goes on with it.
func (p *calendarPair) agree(t *rapid.T, c quota.Command, changed *calendarModel) {
	out := p.ledger.Apply(p.stamp(), c)
	if legal := changed.isLegal(); legal != (out.Refused == nil) {
		t.Fatalf("second %d: %+v is legal: %v, but the ledger says %v\nmodel: %+v", p.model.now, c, legal, out.Refused,
			p.model)
	} else if legal {
		p.model = changed
	}
}

func drawWindows(t *rapid.T, from, most int) (model [][2]int, civil []quota.CivilWindow) {
	for range 1 + quotatest.Die(t, most, "windows") {
		from += quotatest.Die(t, 4, "from")
		until := from + 1 + quotatest.Die(t, 9, "length")
		model, civil = append(model, [2]int{from, until}),
			append(civil, quota.CivilWindow{From: civilSecond(from), Until: civilSecond(until)})
		from = until
	}
	return model, civil
}

func (p *calendarPair) schedule(t *rapid.T, node string) {
	s := modelSchedule{
		id: p.newID(), node: node, kind: quota.AdjustmentKind(1 + quotatest.Die(t, 3, "adjustment")),
		amount: quotatest.Die(t, 9, "amount"), recurs: quotatest.Die(t, 3, "recurs") == 0,
	}
	if s.kind == quota.AddToLimit {
		if s.amount -= 4; s.amount == 0 {
			s.amount = 5
		}
	}
	c := quota.ScheduleLimits{ID: s.id, Tree: "t", Node: node, Adjustments: []quota.LimitAdjustment{
		{Resource: "cores", Kind: s.kind, Amount: quota.Amount(s.amount)},
	}}
	most := 1
	if s.recurs {
		c.Rule, most = "rule", 3
	}
	s.windows, c.Windows = drawWindows(t, p.model.now, most)
	changed := p.model.copy()
	changed.scheduled = append(changed.scheduled, s)
	p.agree(t, c, changed)
}

func (p *calendarPair) change(t *rapid.T, c quota.SetLimits, node string) {
	changed := p.model.copy()
	changed.limits[node] += quotatest.Die(t, 5, "difference") - 2
	if changed.limits[node] < 0 {
		return
	}
	c.Tree, c.Node, c.Limits = "t", node, cores(quota.Amount(changed.limits[node]))
	p.agree(t, c, changed)
}

func (p *calendarPair) cancel(t *rapid.T) {
	if len(p.model.scheduled) == 0 {
		return
	}
	i := quotatest.Die(t, len(p.model.scheduled), "cancelled")
	changed := p.model.copy()
	changed.scheduled = slices.Delete(changed.scheduled, i, i+1)
	p.agree(t, quota.CancelScheduledLimit{ID: p.model.scheduled[i].id}, changed)
}

func (p *calendarPair) extend(t *rapid.T) {
	i := slices.IndexFunc(p.model.scheduled, func(s modelSchedule) bool { return s.recurs })
	if i < 0 {
		return
	}
	s := p.model.scheduled[i]
	first := s.windows[len(s.windows)-1][1]
	if n := len(s.skipped); n > 0 {
		first = max(first, s.skipped[n-1][1])
	}
	more, civil := drawWindows(t, max(p.model.now, first), 4)
	if out := p.ledger.Apply(p.stamp(), quota.ExtendSchedule{ID: s.id, Windows: civil}); out.Refused != nil {
		t.Fatal(out.Refused)
	}
	for _, w := range more {
		changed := p.model.copy()
		to := &changed.scheduled[i]
		if to.windows = slices.Concat(to.windows, [][2]int{w}); changed.isLegal() {
			p.model = changed
			continue
		}
		is := &p.model.scheduled[i]
		is.skipped = slices.Concat(is.skipped, [][2]int{w})
	}
}

func (p *calendarPair) allocate(t *rapid.T, c modelClaim) {
	id := p.newID()
	out := p.ledger.Apply(p.stamp(), quota.Allocate{ID: id, Claims: []quota.Claim{
		{Tree: "t", Node: c.node, Amounts: quota.Vector{{Resource: "cores", Amount: quota.Amount(c.amount)}}},
	}})
	if fits := p.model.fits(c); fits != out.Decision.Granted {
		t.Fatalf("second %d: %+v fits: %v, but the ledger says %+v", p.model.now, c, fits, out.Decision)
	} else if fits {
		p.model.held[id] = c
	}
}

// compare compares all limits in force.
func (p *calendarPair) compare(t *rapid.T) {
	page, refused := p.ledger.Reader().Usage(quota.UsageQuery{Tree: "t", Subtree: true, Max: 100})
	if refused != nil {
		t.Fatal(refused)
	}
	for _, n := range page.Nodes {
		want := quota.AtMost(quota.Amount(p.model.limitAt(n.Path, p.model.now)))
		if is := n.Resources[0].Effective; is != want || n.Resources[0].Set.Amount != quota.Amount(p.model.limits[n.Path]) {
			t.Fatalf("second %d: the limit of %q is %s and configured as %s, want %s\nmodel: %+v", p.model.now, n.Path, is,
				n.Resources[0].Set, want, p.model)
		}
	}
	list := p.ledger.Reader().ScheduledLimits("", "")
	if n := len(list); n != len(p.model.scheduled) {
		t.Fatalf("second %d: %d limits are scheduled, want %d", p.model.now, n, len(p.model.scheduled))
	}
	for i, s := range p.model.scheduled {
		var want []quota.CivilWindow
		for _, w := range s.skipped {
			if w[1] > p.model.now {
				want = append(want, quota.CivilWindow{From: civilSecond(w[0]), Until: civilSecond(w[1])})
			}
		}
		var is []quota.CivilWindow
		for _, w := range list[i].Skipped {
			is = append(is, w.CivilWindow)
		}
		if !slices.Equal(is, want) {
			t.Fatalf("second %d: %s has skipped %v, want %v", p.model.now, s.id, is, want)
		}
	}
}

// TestScheduledLimitsAgainstTheirModel: at every second the ledger has the limits of the model and admits what fits
// them, and a change is refused exactly if a second of the future would break a rule. Of the windows that a recurring
// limit is extended by, exactly those are skipped.
func TestScheduledLimitsAgainstTheirModel(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		p := newCalendarPair(t)
		for p.model.now < modelEnd {
			for range quotatest.Die(t, 5, "commands") {
				p.step(t)
				p.compare(t)
			}
			if quotatest.Die(t, 4, "restore") == 0 {
				p.ledger = restoredWith(t, p.ledger, quota.DefaultBounds())
			}
			p.model.advance(1 + quotatest.Die(t, 2, "pause"))
			for p.ledger.Apply(p.stamp(), quota.Expire{Most: 1 + quotatest.Die(t, 3, "most")}).Expired > 0 {
				continue
			}
			p.compare(t)
			if err := p.ledger.Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestCheckBetweenExpires: windows that end at one instant may end in several Expires. What is in force between them
// breaks a rule for that moment, and no invariant.
func TestCheckBetweenExpires(t *testing.T) {
	l := ledger.New(quota.DefaultBounds())
	apply := func(second int, c quota.Command) ledger.Outcome {
		t.Helper()
		out := l.Apply(quota.Stamp{At: quota.Instant(second * 1000)}, c)
		if err := l.Check(); out.Refused != nil || err != nil {
			t.Fatalf("second %d: %+v is refused with %v, and then: %v", second, c, out.Refused, err)
		}
		return out
	}
	schedule := func(id string, kind quota.AdjustmentKind, amount quota.Amount) {
		t.Helper()
		apply(1, quota.ScheduleLimits{
			ID: id, Tree: "t", Adjustments: []quota.LimitAdjustment{{Resource: "cores", Kind: kind, Amount: amount}},
			Windows: []quota.CivilWindow{{From: civilSecond(1), Until: civilSecond(2)}},
		})
	}
	apply(1, quota.ApplyTrees{Trees: []quota.TreeSpec{{
		Name: "t", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}}, Nodes: []quota.NodeSpec{
			{Path: "", Policy: "strict", Limits: cores(12)}, {Path: "a", Limits: cores(11)},
		},
	}}})
	apply(1, quota.SetCivilOffset{Offset: modelOffset * 1000})
	schedule("more", quota.AddToLimit, 3)
	schedule("set", quota.SetLimit, 8)
	for apply(2, quota.Expire{Most: 1}).Expired > 0 {
		continue
	}
}
