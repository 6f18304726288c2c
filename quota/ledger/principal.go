package ledger

import "github.com/quorate/quorate/quota"

// accounts are what users and groups hold in a tree. All of it follows from the held claims, and nobody is in it who
// holds nothing. What may be held is not here: the nodes have the rules.
type accounts struct {
	users, groups map[string]*holder
	tracks        map[trackKey]*track
	// members has, by application, the groups that it is counted in, by name: nearly always one.
	members map[memberKey][]membership
}

// holder is a user or a group that holds something in a tree.
type holder struct {
	quota.Holder
	at map[*node]*holding
}

// holding is what a holder holds in the subtree of a node.
type holding struct {
	of     *holder
	node   *node
	up     *holding       // at the node's parent
	used   []quota.Amount // by resource index
	claims int
	runs   map[string]*run // by application; the empty name has the claims of none
	// applications are how many run.
	applications int
	// of the rules that it was looked up in, the rule of this holder.
	lookedUp *rules
	rule     *rule
}

// run is the claims of one application in a holding.
type run struct {
	in          *holding
	up          *run // the same application, one level higher
	application string
	claims      int
}

// find answers what somebody holds in the tree, nil if nothing.
func (acc *accounts) find(who quota.Holder) *holder {
	if who.Kind == quota.AGroup {
		return acc.groups[who.Name]
	}
	return acc.users[who.Name]
}

// run finds the run of an application at a node, or begins it there and on every level above.
func (acc *accounts) run(who quota.Holder, home *node, application string) *run {
	h := acc.find(who)
	if h == nil {
		h = &holder{Holder: who, at: map[*node]*holding{}}
		acc.enter(h)
	}
	var first, last *run
	for n := home; n != nil; n = n.parent {
		r, began := h.run(n, application)
		if first == nil {
			first = r
		}
		if last != nil {
			last.up, last.in.up = r, r.in
		}
		if last = r; !began {
			break // so it runs above, too
		}
	}
	return first
}

func (acc *accounts) enter(h *holder) {
	list := &acc.users
	if h.Kind == quota.AGroup {
		list = &acc.groups
	}
	if *list == nil {
		*list = map[string]*holder{}
	}
	(*list)[h.Name] = h
}

func (acc *accounts) leave(h *holder) {
	if h.Kind == quota.AGroup {
		delete(acc.groups, h.Name)
	} else {
		delete(acc.users, h.Name)
	}
}

// run finds or begins a run at one node.
func (h *holder) run(n *node, application string) (r *run, began bool) {
	at := h.at[n]
	if at == nil {
		at = &holding{of: h, node: n, used: make([]quota.Amount, len(n.tree.resources)), runs: map[string]*run{}}
		h.at[n] = at
	}
	if r = at.runs[application]; r != nil {
		return r, false
	}
	r = &run{in: at, application: application}
	at.runs[application] = r
	at.countApplication(r, 1)
	return r, true
}

// add counts claims and what they hold on every level, or with a sign of -1 gives them back. What has become empty is
// forgotten.
func (r *run) add(amounts []placedAmount, claims int, sign quota.Amount) {
	for ; r != nil; r = r.up {
		r.claims += claims * int(sign)
		h := r.in
		h.claims += claims * int(sign)
		for _, p := range amounts {
			h.used[p.resource.index] += sign * p.amount
		}
		if r.claims == 0 {
			h.end(r)
		}
	}
}

// end forgets a run, and with the last one the holding.
func (h *holding) end(r *run) {
	delete(h.runs, r.application)
	h.countApplication(r, -1)
	if len(h.runs) > 0 {
		return
	}
	delete(h.of.at, h.node)
	if len(h.of.at) == 0 {
		h.node.tree.accounts.leave(h.of)
	}
}

// countApplication counts a run that begins or ends; at the node, each user's count apart.
func (h *holding) countApplication(r *run, n int) {
	if r.application == "" {
		return
	}
	h.applications += n
	if h.of.Kind == quota.AUser {
		h.node.applications += n
	}
}

// recount rebuilds the accounts along the present paths of their nodes: whoever moves nodes or changes the places of
// resources calls it. It costs as many steps as there are tracks, not claims.
func (t *tree) recount() {
	tracks := t.accounts.tracks
	t.accounts = accounts{}
	t.root.walk(func(n *node) bool {
		n.applications = 0
		return true
	})
	for _, tr := range tracks { // sums, in whatever order
		tr.enter()
		tr.count(tr.held, tr.claims, 1)
	}
}
