package explain

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/state"
	"github.com/quorate/quorate/quota/policy"
)

// levelSurvey looks at the levels of one list of claims, whose numbers are those without the request.
type levelSurvey struct {
	state      *state.State
	allocation *state.Allocation
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
func (level surveyedLevel) unchecked() surveyedLevel {
	level.Verdict, level.otherwise = quota.LevelUnchecked, quota.LevelUnchecked
	return level
}

func (s *levelSurvey) survey() {
	a := s.allocation
	demands := admit.DemandsOf(a.Claims, (*state.PlacedClaim).Home)
	rooms := make([][]quota.Amount, len(demands))
	for i, d := range demands {
		rooms[i] = d.PoolRooms()
	}
	claims := slices.DeleteFunc(slices.Clone(a.Claims), func(c state.PlacedClaim) bool { return c.IsForced() })
	s.pooled = admit.InCohort(claims) && !admit.Uncountable(admit.DemandsOf(claims, (*state.PlacedClaim).Home))
	if s.pooled {
		admit.DrawAll(claims, 1)
		defer admit.DrawAll(claims, -1)
	}
	for i, d := range demands {
		if s.page.left -= len(d.Amounts); s.page.left < 0 {
			s.page.Cut = true
			break
		}
		s.addNode(d, rooms[i])
	}
	for _, v := range admit.ItemLevels(&s.state.Inventory, a) {
		if s.page.left--; s.page.left < 0 {
			s.page.Cut = true
			break
		}
		s.add(v, quota.AtMost(v.Limit), v.Used+v.Requested <= v.Limit, quota.LevelMakesRoom)
	}
	s.followDecision()
	for _, level := range s.levels {
		level.Alternative = s.number
		s.page.List = append(s.page.List, level.LevelCheck)
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
func (s *levelSurvey) addNode(d admit.Demand, rooms []quota.Amount) {
	n := d.Node
	forced := slices.ContainsFunc(s.allocation.Claims, func(c state.PlacedClaim) bool {
		return c.At.Tree == n.Tree && c.IsForced()
	})
	for i, p := range d.Amounts {
		v := quota.Violation{
			Tree: n.TreeName, Node: n.Path, Resource: p.Resource.Name,
			Used: n.Subtree[p.Resource.Index], Requested: p.Amount,
		}
		switch {
		case forced:
			s.add(v, n.Effective(p.Resource.Index), true, quota.LevelUnchecked)
			s.levels[len(s.levels)-1] = s.levels[len(s.levels)-1].unchecked()
		case n.Pools != nil && s.pooled:
			s.addPool(v, n, p.Resource.Index, rooms[i])
		default:
			fits := v.Used+p.Amount <= n.Ceilings[p.Resource.Index] && p.Amount <= quota.MaxAmount
			s.add(v, n.Effective(p.Resource.Index), fits, s.otherwiseAt(n))
		}
	}
	if p := s.allocation.Principal(); p.User != "" && !forced {
		s.addPrincipals(d, p)
	}
}

// otherwiseAt is how the request gets what a node lacks: a claim that borrows softly is counted further up.
func (s *levelSurvey) otherwiseAt(n *state.Node) quota.LevelVerdict {
	if n.Borrows != policy.BorrowSoft || n.Parent == nil || n.Parent.Borrows != policy.BorrowSoft {
		return quota.LevelMakesRoom
	}
	for _, c := range s.decision.Placements {
		isAbove := n.Path != c.Placed && quota.IsWithin(n.Path, c.Placed)
		if c.Tree == n.TreeName && quota.IsWithin(c.Node, n.Path) && !isAbove {
			return quota.LevelMakesRoom
		}
	}
	return quota.LevelBorrows
}

// addPool adds the limit of a node of a cohort, and the bound of what it borrows if it has to borrow.
// A node above the claims whose room the request does not lower decides nothing, whatever it owes.
func (s *levelSurvey) addPool(v quota.Violation, n *state.Node, r int, before quota.Amount) {
	room, owes, owed := n.Pools[r].Room(), n.Pools[r].Owes(), max(0, -before)
	limit := n.Effective(r)
	if held := v.Used.Plus(v.Requested); limit.Kind != quota.Advisory {
		if limit = quota.NoLimit(); held.Plus(room) < quota.MaxAmount {
			limit = quota.AtMost(held + room)
		}
	}
	s.add(v, limit, owes == 0, quota.LevelBorrows)
	if owes > 0 && room >= before && !admit.IsClaimed(s.allocation.Claims, n) {
		s.levels[len(s.levels)-1] = s.levels[len(s.levels)-1].unchecked()
		return
	}
	if !n.Pooled() || owes == 0 {
		return
	}
	bound := quota.NoLimit()
	if most := n.MayOwe(r); most < quota.MaxAmount {
		bound = quota.AtMost(most)
	}
	v.Kind, v.Used, v.Requested = quota.OfBorrowing, owed, owes-owed
	s.add(v, bound, owes <= n.MayOwe(r), quota.LevelMakesRoom)
}

func (s *levelSurvey) addPrincipals(d admit.Demand, p quota.Principal) {
	n := d.Node
	if n.Rules == nil && !n.Spec.Applications.HasAmount() {
		return
	}
	standings := admit.StandingsOf(s.allocation, p, n.Tree, state.Asker{})
	holders := []*admit.Standing{&standings.User}
	if standings.Group.Name != "" {
		holders = append(holders, &standings.Group)
	}
	for _, standing := range holders {
		s.addHolder(d, standing, p.Application)
	}
	most := n.Spec.Applications
	if !most.HasAmount() || p.Application == "" || standings.User.At(n).Has(p.Application) {
		return
	}
	running := quota.Amount(n.Applications)
	s.add(quota.Violation{
		Tree: n.TreeName, Node: n.Path, Kind: quota.OfApplications, Used: running, Requested: 1,
	}, most, most.Allows(running+1), quota.LevelMakesRoom)
}

func (s *levelSurvey) addHolder(d admit.Demand, standing *admit.Standing, application string) {
	h := standing.At(d.Node)
	rule := h.RuleAt(d.Node, standing.Holder)
	if rule == nil {
		return
	}
	v := quota.Violation{Tree: d.Node.TreeName, Node: d.Node.Path, Holder: standing.Holder}
	for _, p := range d.Amounts {
		most := rule.Most[p.Resource.Index]
		if p.Amount == 0 || most == quota.MaxAmount {
			continue
		}
		v.Resource, v.Used, v.Requested = p.Resource.Name, h.Uses(p.Resource.Index), p.Amount
		s.add(v, quota.AtMost(most), v.Used+p.Amount <= most && p.Amount <= quota.MaxAmount, quota.LevelMakesRoom)
	}
	if !rule.Applications.HasAmount() || application == "" || h.Has(application) {
		return
	}
	v.Resource, v.Kind, v.Used, v.Requested = "", quota.OfApplications, h.Running(), 1
	s.add(v, rule.Applications, rule.Applications.Allows(v.Used+1), quota.LevelMakesRoom)
}

// followDecision marks exactly the limits as exceeded of which the decision has a violation, with its numbers: where
// claims borrow or end others, what a level lacks without the request does not decide.
func (s *levelSurvey) followDecision() {
	known := map[quota.Violation][]int{}
	for i, surveyed := range s.levels {
		level := quota.Violation{
			Tree: surveyed.Tree, Node: surveyed.Node, Resource: surveyed.Resource,
			Kind: surveyed.Kind, Holder: surveyed.Holder, Item: surveyed.Item,
		}
		known[level] = append(known[level], i)
		if surveyed.Verdict == quota.LevelExceeded {
			s.levels[i].Verdict = surveyed.otherwise
		}
	}
	for _, v := range s.decision.Violations {
		if v.Alternative != s.number || v.Kind == quota.OfQueue || v.Kind == quota.OfHold {
			continue
		}
		at := known[levelOf(v)]
		switch {
		case len(at) > 0:
			level := &s.levels[at[0]]
			level.Used, level.Requested, level.Limit = v.Used, v.Requested, quota.AtMost(v.Limit)
			level.Verdict = quota.LevelExceeded
			known[levelOf(v)] = at[1:]
		case !s.page.Cut:
			s.add(v, quota.AtMost(v.Limit), false, quota.LevelExceeded)
		}
	}
}
