package oracle

import (
	"regexp"
	"slices"

	"github.com/quorate/quorate/quota"
)

// oracle is the slow, obviously right ledger: it keeps what was asked and granted, and every past configuration, and
// answers every question by walking over all of it.
type oracle struct {
	bounds quota.Bounds
	now    quota.Stamp

	configuration
	lastID   int // of a node
	revision uint64
	history  []quota.Revision
	past     map[uint64]configuration // by revision
	// reach is the oldest revision that the history reaches back to, as the ledger says.
	reach uint64

	allocations []*allocation // all that ever were, in the order of their fences
	ends        []*allocation // in the order of their ends
	lastArrival uint64        // last number of the arrival order, see allocation.arrivals
	excluded    []claimRef    // not counted while a request is tried
	events      []quota.Event

	items        []*item        // in no order
	lastStateSeq int            // of the items
	itemNumbers  map[string]int // last used in the name of an item created on demand, by tree and resource

	versions    map[string]int // of trees; they change with what is held there, see undo_test.go
	lastVersion int

	waiting  []*allocation // lists of claims, in the order of the queue
	lastTurn uint64
	deciding *allocation // what is tried at its turn
}

// allocation is one that is held or has ended.
type allocation struct {
	// request is what is held: items count as amounts, as many as are held. asked is the request as it came.
	// If the request had alternatives, whole has all of them, and these are those of the granted one.
	request, asked, whole quota.Allocate
	alternative           int

	steps    int      // of the ranges that were asked for
	claimed  []string // path of the node that each claim belongs to
	groups   []string // that each claim counts for
	placed   []string // path of the node where it is counted
	arrivals []uint64 // its number in the order of arrival there; 0 without borrowing
	fence    uint64
	granted  quota.Stamp
	forced   bool
	state    quota.State
	until    quota.Instant // of a reservation; 0 once it is confirmed
	lease
	undo *undoRecord // of a reservation
	queueing

	generation uint64 // of its last change, and how that is known
	change     string
	splitFrom  string

	ended *quota.Stamp
	by    string // what ended it
	// preempted are those that it has ended.
	preempted []quota.Preempted
	// itemsAtEnd are the items that it had when it ended, by claim.
	itemsAtEnd [][]quota.ItemName
}

// claimRef is one claim of an allocation.
type claimRef struct {
	*allocation
	i int
}

func (c claimRef) claim() quota.Claim { return c.request.Claims[c.i] }

// verdict is what a command should do.
type verdict struct {
	refused  quota.Kind // 0 if it is not
	field    string     // of a command that does not configure
	breaches []string
	repeated bool

	decided     bool
	waits       bool
	alternative int
	violations  []quota.Violation
	preempted   []quota.Preempted
	fence       uint64 // 0 if nothing was granted

	expired int
	items   []string

	configured bool
	revision   uint64
	changes    []quota.Change
	over       []quota.Overuse
}

func newOracle(b quota.Bounds) *oracle {
	empty := configuration{trees: map[string]quota.TreeSpec{}, ids: map[string]map[string]int{}}
	return &oracle{
		bounds: b, configuration: empty, past: map[uint64]configuration{0: empty},
		itemNumbers: map[string]int{}, versions: map[string]int{},
	}
}

func refusal(kind quota.Kind, field string) verdict { return verdict{refused: kind, field: field} }

func (o *oracle) apply(s quota.Stamp, c quota.Command) verdict {
	o.now = quota.Stamp{At: max(o.now.At, s.At), Wall: s.Wall}
	v := o.execute(c)
	o.settle()
	return v
}

func (o *oracle) execute(c quota.Command) verdict {
	switch c := c.(type) {
	case quota.Allocate:
		return o.allocate(c)
	case quota.Release:
		return o.release(c)
	case quota.Renew:
		return o.renew(c)
	case quota.Resize:
		return o.resize(c)
	case quota.Transfer:
		return o.transfer(c)
	case quota.Split:
		return o.split(c)
	case quota.UpdateItems:
		return o.updateItems(c)
	case quota.ResetItems:
		return o.resetItems(c)
	case quota.Confirm:
		return o.confirm(c)
	case quota.Cancel:
		return o.cancel(c)
	case quota.Expire:
		return o.expire(c)
	case quota.ApplyTrees:
		before := o.trees
		v := o.configure(c.Meta, func() (verdict, configuration) { return o.applyTrees(c) })
		o.requeue(before)
		return v
	case quota.SetLimits:
		return o.configure(c.Meta, func() (verdict, configuration) { return o.setLimits(c) })
	case quota.DeleteTree:
		return o.configure(c.Meta, func() (verdict, configuration) { return o.deleteTree(c) })
	case quota.MoveNode:
		return o.configure(c.Meta, func() (verdict, configuration) { return o.moveNode(c) })
	case quota.RollBack:
		return o.configure(c.Meta, func() (verdict, configuration) { return o.rollBack(c) })
	}
	panic("a command outside the closed list")
}

// find returns what an id stands for: what is held or waits, or else the last that has ended, if its tombstone is kept.
func (o *oracle) find(id string) *allocation {
	for _, a := range o.held() {
		if a.request.ID == id {
			return a
		}
	}
	if w := o.waiterOf(id); w != nil {
		return w.record
	}
	for _, a := range slices.Backward(o.ends) {
		if a.request.ID == id {
			if o.remembered(a) {
				return a
			}
			return nil
		}
	}
	return nil
}

// findKnown is find for a command about an id, with its refusal if there is none.
func (o *oracle) findKnown(id string) (*allocation, verdict) {
	if !idPattern.MatchString(id) {
		return nil, refusal(quota.Invalid, "id")
	}
	a := o.find(id)
	if a == nil {
		return nil, refusal(quota.NotFound, "id")
	}
	return a, verdict{}
}

// remembered is true for the last that ended, if that was not too long ago.
func (o *oracle) remembered(a *allocation) bool {
	last := o.ends[max(0, len(o.ends)-o.bounds.Ended):]
	return slices.Contains(last, a) && o.now.At-a.ended.At < quota.Instant(o.bounds.TombstoneSpan)
}

func (o *oracle) held() []*allocation {
	var held []*allocation
	for _, a := range o.allocations {
		if a.ended == nil {
			held = append(held, a)
		}
	}
	return held
}

func (o *oracle) recordEvent(e quota.Event) {
	e.Number, e.Stamp = uint64(len(o.events)+1), o.now
	o.events = append(o.events, e)
}

// recentEvents are those that the ledger still has.
func (o *oracle) recentEvents() []quota.Event {
	return o.events[max(0, len(o.events)-o.bounds.Events):]
}

var (
	idPattern       = regexp.MustCompile(`^([!-)+-~]{1,256} )?[!-~]{1,128}$`) // a namespace and an id
	requestPattern  = regexp.MustCompile(`^[!-~]{1,128}$`)
	namePattern     = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,62}$`)
	resourcePattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./-]{0,62}$`)
)
