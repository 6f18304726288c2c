package ledger

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/quota"
)

// maxJudged is how many denied requests a dry run of a configuration judges anew.
const maxJudged = 100

// effects says what a planned change would mean for the requests to come. A draft carries the usage that it takes over,
// so it can be asked like a tree of the ledger, and nothing needs to be changed and changed back.
func (pl planner) effects(steps []*succession) *quota.Effects {
	e := &quota.Effects{}
	changed := map[string]bool{}
	after := New(pl.bounds)
	after.now, after.level = pl.now, pl.level
	after.forest.trees, after.forest.nodes = maps.Clone(pl.forest.trees), pl.forest.nodes
	after.allocations.fence, after.allocations.seat = pl.allocations.fence, pl.allocations.seat
	for _, s := range steps {
		if len(s.changes) == 0 {
			continue
		}
		changed[s.changes[0].Tree] = true
		delete(after.forest.trees, s.changes[0].Tree)
		if s.draft != nil {
			after.forest.trees[s.draft.name] = s.draft
			addRoomChanges(e, s)
		}
	}
	e.Admitted = pl.admittedBy(after, changed)
	return e
}

// effectsOf is the same for another specification of one node.
func (pl planner) effectsOf(t *tree, spec *quota.NodeSpec) *quota.Effects {
	w := wish{spec: t.present(), field: "limits"}
	for i := range w.spec.Nodes {
		if w.spec.Nodes[i].Path == spec.Path {
			w.spec.Nodes[i] = *spec
		}
	}
	return pl.planWishes([]wish{w}).effects()
}

// addRoomChanges lists the nodes that are there before and after and whose room appears or vanishes.
func addRoomChanges(e *quota.Effects, s *succession) {
	if s.old == nil {
		return
	}
	places := s.old.places(s.draft.resources)
	s.draft.root.walk(func(n *node) bool {
		for i, r := range s.draft.resources {
			if n.from == nil || places[i] < 0 {
				continue
			}
			c := quota.RoomChange{Tree: n.treeName, Node: n.path, Resource: r.Name}
			c.Before, c.BeforeBounded = n.from.headroom(places[i])
			c.After, c.AfterBounded = n.headroom(i)
			had, has := !c.BeforeBounded || c.Before > 0, !c.AfterBounded || c.After > 0
			if had != has && len(e.Rooms) < quota.MaxOver {
				e.Rooms = append(e.Rooms, c)
			}
		}
		return len(e.Rooms) < quota.MaxOver
	})
}

// admittedBy lists the newest requests that were denied in changed trees, would be denied again now, and would be granted after
// the change. It does not judge those that may borrow softly or want items: they depend on where claims are counted and on
// which items are free, which a draft does not know.
func (pl planner) admittedBy(after *Ledger, changed map[string]bool) []string {
	var ids []string
	judged := map[string]bool{}
	for _, e := range slices.Backward(pl.journal.events) {
		if e.Kind != quota.EventDenied || judged[e.ID] || pl.allocations.lookup(e.ID) != nil || !claimsFromAny(e.Request, changed) {
			continue
		}
		if len(judged) == maxJudged {
			break
		}
		judged[e.ID] = true
		if (planner{after}).wouldAdmit(*e.Request) && !pl.grantsNow(*e.Request) {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// wouldAdmit decides a request, and takes back what that books.
func (pl planner) wouldAdmit(request quota.Allocate) bool {
	a, refused := pl.place(request)
	if refused != nil || a.wantsItems() || slices.ContainsFunc(a.claims, func(c placedClaim) bool { return c.soft() }) {
		return false
	}
	t := pl.begin(a)
	decision := t.decide()
	t.rollback()
	return decision.Granted
}

// grantsNow decides a request on the present state, and changes nothing.
func (pl planner) grantsNow(request quota.Allocate) bool {
	out := pl.allocate(request, dryRun)
	return out.Decision != nil && out.Decision.Granted
}

// claimsFromAny is true if a claim is in one of some trees.
func claimsFromAny(r *quota.Allocate, trees map[string]bool) bool {
	return slices.ContainsFunc(r.Claims, func(c quota.Claim) bool { return trees[c.Tree] })
}
