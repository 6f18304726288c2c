package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// levelSurvey looks at the levels of one list of claims, whose numbers are those without the request.
type levelSurvey struct {
	ledger     *Ledger
	allocation *Allocation
	decision   *quota.Decision
	number     int // of the list among the alternatives; 0 if there are none
	page       *levelPage
	// pooled is true while the request is drawn from the pools.
	pooled bool
	levels []surveyedLevel
}

// surveyedLevel is a level with its verdict if it lacks something and does not stop the request.
type surveyedLevel struct {
	quota.LevelCheck

	otherwise quota.LevelVerdict
}

// unchecked is the level of a limit that does not apply.
func (l surveyedLevel) unchecked() surveyedLevel {
	l.Verdict, l.otherwise = quota.LevelUnchecked, quota.LevelUnchecked
	return l
}

func (s *levelSurvey) survey() {
	a := s.allocation
	demands := demandsOf(a.claims, (*placedClaim).home)
	rooms := make([][]quota.Amount, len(demands))
	for i, d := range demands {
		rooms[i] = d.poolRooms()
	}
	claims := slices.DeleteFunc(slices.Clone(a.claims), func(c placedClaim) bool { return c.isForced() })
	if s.pooled = inCohort(claims) && !uncountable(demandsOf(claims, (*placedClaim).home)); s.pooled {
		drawAll(claims, 1)
		defer drawAll(claims, -1)
	}
	for i, d := range demands {
		if s.page.left -= len(d.amounts); s.page.left < 0 {
			s.page.cut = true
			break
		}
		s.addNode(d, rooms[i])
	}
	for _, v := range s.ledger.inventory.itemLevels(a) {
		if s.page.left--; s.page.left < 0 {
			s.page.cut = true
			break
		}
		s.add(v, quota.AtMost(v.Limit), v.Used+v.Requested <= v.Limit, quota.LevelMakesRoom)
	}
	s.followDecision()
	for _, l := range s.levels {
		l.Alternative = s.number
		s.page.list = append(s.page.list, l.LevelCheck)
	}
}

// add adds a limit, described as a violation of it. If the request does not fit and is not stopped, it does otherwise.
func (s *levelSurvey) add(v quota.Violation, limit quota.Limit, fits bool, otherwise quota.LevelVerdict) {
	verdict := quota.LevelExceeded
	if fits {
		verdict = quota.LevelFits
	}
	s.levels = append(s.levels, surveyedLevel{quota.LevelCheck{
		Tree: v.Tree, Node: v.Node, Resource: v.Resource, Kind: v.Kind, Holder: v.Holder, Item: v.Item,
		Limit: limit, Used: v.Used, Requested: v.Requested, Verdict: verdict,
	}, otherwise})
}

// addNode adds the limits at one node. rooms are its rooms in a cohort by amount of the demand, without the request.
func (s *levelSurvey) addNode(d demand, rooms []quota.Amount) {
	n := d.node
	forced := slices.ContainsFunc(s.allocation.claims, func(c placedClaim) bool {
		return c.at.tree == n.tree && c.isForced()
	})
	for i, p := range d.amounts {
		v := quota.Violation{
			Tree: n.treeName, Node: n.path, Resource: p.resource.Name,
			Used: n.subtree[p.resource.index], Requested: p.amount,
		}
		switch {
		case forced:
			s.add(v, n.effective(p.resource.index), true, quota.LevelUnchecked)
			s.levels[len(s.levels)-1] = s.levels[len(s.levels)-1].unchecked()
		case n.pools != nil && s.pooled:
			s.addPool(v, n, p.resource.index, rooms[i])
		default:
			fits := v.Used+p.amount <= n.ceilings[p.resource.index] && p.amount <= quota.MaxAmount
			s.add(v, n.effective(p.resource.index), fits, s.otherwiseAt(n))
		}
	}
	if p := s.allocation.principal(); p.User != "" && !forced {
		s.addPrincipals(d, p)
	}
}

// otherwiseAt is how the request gets what a node lacks: a claim that borrows softly is counted further up.
func (s *levelSurvey) otherwiseAt(n *node) quota.LevelVerdict {
	if n.borrows != policy.BorrowSoft || n.parent == nil || n.parent.borrows != policy.BorrowSoft {
		return quota.LevelMakesRoom
	}
	for _, c := range s.decision.Placements {
		isAbove := n.path != c.Placed && quota.IsWithin(n.path, c.Placed)
		if c.Tree == n.treeName && quota.IsWithin(c.Node, n.path) && !isAbove {
			return quota.LevelMakesRoom
		}
	}
	return quota.LevelBorrows
}

// addPool adds the limit of a node of a cohort, and the bound of what it borrows if it has to borrow.
// A node above the claims whose room the request does not lower decides nothing, whatever it owes.
func (s *levelSurvey) addPool(v quota.Violation, n *node, r int, before quota.Amount) {
	room, owes, owed := n.pools[r].room(), n.pools[r].owes(), max(0, -before)
	limit := n.effective(r)
	if held := v.Used.Plus(v.Requested); limit.Kind != quota.Advisory {
		if limit = quota.NoLimit(); held.Plus(room) < quota.MaxAmount {
			limit = quota.AtMost(held + room)
		}
	}
	s.add(v, limit, owes == 0, quota.LevelBorrows)
	if owes > 0 && room >= before && !isClaimed(s.allocation.claims, n) {
		s.levels[len(s.levels)-1] = s.levels[len(s.levels)-1].unchecked()
		return
	}
	if !n.pooled() || owes == 0 {
		return
	}
	bound := quota.NoLimit()
	if most := n.mayOwe(r); most < quota.MaxAmount {
		bound = quota.AtMost(most)
	}
	v.Kind, v.Used, v.Requested = quota.OfBorrowing, owed, owes-owed
	s.add(v, bound, owes <= n.mayOwe(r), quota.LevelMakesRoom)
}

// addPrincipals adds the limits at a node of the user, of its group, and of applications.
func (s *levelSurvey) addPrincipals(d demand, p quota.Principal) {
	n := d.node
	if n.rules == nil && n.spec.Applications == 0 {
		return
	}
	is := s.allocation.standings(p, n.tree, asker{})
	holders := []*standing{&is.user}
	if is.group.Name != "" {
		holders = append(holders, &is.group)
	}
	for _, who := range holders {
		s.addHolder(d, who, p.Application)
	}
	most := n.spec.Applications
	if most == 0 || p.Application == "" || is.user.at(n).has(p.Application) {
		return
	}
	running := quota.Amount(n.applications)
	s.add(quota.Violation{
		Tree: n.treeName, Node: n.path, Kind: quota.OfApplications, Used: running, Requested: 1,
	}, quota.AtMost(most), running < most, quota.LevelMakesRoom)
}

// addHolder adds the limits of a user or a group at a node.
func (s *levelSurvey) addHolder(d demand, who *standing, application string) {
	h := who.at(d.node)
	rule := h.ruleAt(d.node, who.Holder)
	if rule == nil {
		return
	}
	v := quota.Violation{Tree: d.node.treeName, Node: d.node.path, Holder: who.Holder}
	for _, p := range d.amounts {
		most := rule.most[p.resource.index]
		if p.amount == 0 || most == quota.MaxAmount {
			continue
		}
		v.Resource, v.Used, v.Requested = p.resource.Name, h.uses(p.resource.index), p.amount
		s.add(v, quota.AtMost(most), v.Used+p.amount <= most && p.amount <= quota.MaxAmount, quota.LevelMakesRoom)
	}
	if rule.Applications == 0 || application == "" || h.has(application) {
		return
	}
	v.Resource, v.Kind, v.Used, v.Requested = "", quota.OfApplications, h.running(), 1
	s.add(v, quota.AtMost(rule.Applications), v.Used < rule.Applications, quota.LevelMakesRoom)
}

// followDecision marks exactly the limits as exceeded of which the decision has a violation, with its numbers: where
// claims borrow or end others, what a level lacks without the request does not decide.
func (s *levelSurvey) followDecision() {
	known := map[quota.Violation][]int{}
	for i, l := range s.levels {
		level := quota.Violation{
			Tree: l.Tree, Node: l.Node, Resource: l.Resource, Kind: l.Kind, Holder: l.Holder, Item: l.Item,
		}
		known[level] = append(known[level], i)
		if l.Verdict == quota.LevelExceeded {
			s.levels[i].Verdict = l.otherwise
		}
	}
	for _, v := range s.decision.Violations {
		if v.Alternative != s.number || v.Kind == quota.OfQueue || v.Kind == quota.OfHold {
			continue
		}
		at := known[levelOf(v)]
		switch {
		case len(at) > 0:
			l := &s.levels[at[0]]
			l.Used, l.Requested, l.Limit, l.Verdict = v.Used, v.Requested, quota.AtMost(v.Limit), quota.LevelExceeded
			known[levelOf(v)] = at[1:]
		case !s.page.cut:
			s.add(v, quota.AtMost(v.Limit), false, quota.LevelExceeded)
		}
	}
}
