package quota

// Allocation is the record of who holds what, where. It is never changed after it was made: when it ends, another
// record takes its place, so that a frozen ledger and a late answer keep what they saw.
type Allocation struct {
	id      string
	claims  []placedClaim
	labels  []Label
	fence   uint64
	granted Stamp
	// ended is nil while held.
	ended *Stamp
}

// record is an allocation in one piece of memory with what most have: a single claim of one or two amounts. To find and
// release it then takes fewer steps through memory.
type record struct {
	Allocation
	claim   [1]placedClaim
	amounts [2]placedAmount
}

// newAllocation has room for the claims and amounts of a request, and nothing else yet.
func newAllocation(claims []Claim) *Allocation {
	if len(claims) == 1 && len(claims[0].Amounts) <= 2 {
		r := &record{}
		r.claim[0].amounts = r.amounts[:len(claims[0].Amounts)]
		r.claims = r.claim[:]
		return &r.Allocation
	}
	a := &Allocation{claims: make([]placedClaim, len(claims))}
	for i, c := range claims {
		a.claims[i].amounts = make([]placedAmount, len(c.Amounts))
	}
	return a
}

// Fence is the token of the grant.
func (a *Allocation) Fence() uint64 { return a.fence }

// placedClaim is a claim at the node where it is counted.
type placedClaim struct {
	at *node
	// asked is the path that the request named, if it is not the path of at.
	asked   *string
	amounts []placedAmount
}

// placedAmount is one component, tied to the resource of its tree.
type placedAmount struct {
	resource *resource
	amount   Amount
}

// Info copies the record for a reader. It may be called at any time, on any goroutine.
func (a *Allocation) Info() AllocationInfo {
	info := AllocationInfo{
		ID: a.id, Fence: a.fence, GrantedAt: a.granted.At, GrantedWall: a.granted.Wall,
		Claims: make([]ClaimInfo, len(a.claims)),
		Labels: append([]Label(nil), a.labels...),
	}
	for i, c := range a.claims {
		info.Claims[i] = c.info()
	}
	if a.ended != nil {
		info.Ended, info.EndedAt, info.EndedWall = true, a.ended.At, a.ended.Wall
	}
	return info
}

func (c placedClaim) info() ClaimInfo {
	info := ClaimInfo{Tree: c.at.treeName, Node: c.askedPath(), Placed: c.at.path, Amounts: make(Vector, len(c.amounts))}
	for i, a := range c.amounts {
		info.Amounts[i] = Component{Resource: a.resource.Name, Amount: a.amount}
	}
	return info
}

func (c placedClaim) askedPath() string {
	if c.asked != nil {
		return *c.asked
	}
	return c.at.path
}

// is tells whether the record stands for exactly this request, so that a repeat gets the first answer.
func (a *Allocation) is(request Allocate) bool {
	if len(a.claims) != len(request.Claims) || len(a.labels) != len(request.Labels) {
		return false
	}
	for i, l := range a.labels {
		if l != request.Labels[i] {
			return false
		}
	}
	for i, c := range a.claims {
		if !c.is(request.Claims[i]) {
			return false
		}
	}
	return true
}

func (c placedClaim) is(request Claim) bool {
	if c.at.treeName != request.Tree || c.askedPath() != request.Node || len(c.amounts) != len(request.Amounts) {
		return false
	}
	for i, a := range c.amounts {
		if a.resource.Name != request.Amounts[i].Resource || a.amount != request.Amounts[i].Amount {
			return false
		}
	}
	return true
}
