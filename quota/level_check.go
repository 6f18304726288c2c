package quota

// LevelVerdict is what one limit says to a request.
type LevelVerdict uint8

// The closed list of verdicts.
const (
	// LevelFits: the request fits, or the asker does not see the numbers and the limit does not stop the request.
	LevelFits LevelVerdict = 0
	// LevelExceeded: the request would exceed the limit, which stops it. The decision has a violation of this limit.
	LevelExceeded LevelVerdict = 1
	// LevelBorrows: too little is left of the node's share, and the request borrows the rest from the nodes above.
	LevelBorrows LevelVerdict = 2
	// LevelMakesRoom: too little is left, and other allocations are moved or preempted in favor of the request.
	LevelMakesRoom LevelVerdict = 3
	// LevelUnchecked: no limit applies, because the request is forced, or because it does not lower the room of a node of
	// a cohort that owes too much.
	LevelUnchecked LevelVerdict = 4
)

// LevelCheck is one limit that a request passes or that stops it, with the numbers before the request.
type LevelCheck struct {
	Tree, Node, Resource string
	// Kind, Holder and Item are as in the Violation that the limit has if it is exceeded.
	Kind   ViolationKind
	Holder Holder
	Item   string
	// Alternative is the number of the list of AnyOf that passes the limit, from 1; 0 if the request has none.
	Alternative int
	// Limit is the limit in force; in a cohort what the node can hold at present, its own limit and what its members lend.
	// It is unset if the asker does not see it.
	Limit Limit
	// Used is the amount held, Requested what the claims of the request add together.
	Used, Requested Amount
	Verdict         LevelVerdict
	// Seen is how much of it the asker may see, see [LevelCheck.ShownAs].
	Seen TenantsSee
}

// Left is what is left of the limit with the request; negative by what is missing, or by what an advisory limit is
// exceeded. It is 0 if the limit has no amount.
func (c LevelCheck) Left() Amount {
	if !c.Limit.HasAmount() {
		return 0
	}
	return c.Limit.Amount - c.Used.Plus(c.Requested)
}

// ShownAs is the check as it is shown to a caller who sees that much of its level: as [Violation.ShownAs]. It does not
// tell whether a limit that does not stop the request borrows.
func (c LevelCheck) ShownAs(s TenantsSee) LevelCheck {
	if s == SeeTotals {
		return c
	}
	c.Seen, c.Limit, c.Used = s, Limit{}, 0
	if c.Verdict == LevelBorrows || c.Verdict == LevelMakesRoom {
		c.Verdict = LevelFits
	}
	if s == SeeNothing {
		c.Node = ""
	}
	return c
}

// IsOfEveryRequest is true if a request passes such a level by what it asks for alone, whatever limits are configured.
func (c LevelCheck) IsOfEveryRequest() bool {
	return c.Holder.Kind == TheNode && (c.Kind == OfResource || c.Kind == OfItems)
}
