package quota

// LevelHolders are who is in the way at one violated limit: the holders of what counts against it, and the requests
// that wait for it and come first.
type LevelHolders struct {
	Tree, Node, Resource string
	// Kind, Holder, Item and Alternative are as in the Violation.
	Kind        ViolationKind
	Holder      Holder
	Item        string
	Alternative int
	// Groups are at most MaxHolderGroups, the largest amounts first; at equal amounts by node, user and owner. There are
	// holders of a resource, of items and of applications.
	Groups []HolderGroup
	// Others is what else counts against the limit: what smaller and much older holders have, those that the asker may
	// not see, and items that are neither held nor available. It is 0 if the asker may not see the total.
	Others Amount
	// Allocations are the same holders one by one, at most MaxBlockers: the largest amounts first, then by id. Of an
	// application the oldest allocation stands for all. A resize does not name its own allocation.
	Allocations []Blocker
	// OtherAllocations counts the further ones, with those that the asker may not see, and without much older ones. It
	// is 0 if the asker may not see the total.
	OtherAllocations int
	// Ahead are the requests that wait for the same and come first, at most MaxBlockers, in the order of the queue. If a
	// violation of kind OfQueue says how many there are, they are in its entry only.
	Ahead []Blocker
	// OtherAhead counts the further ones, with those that the asker may not see. It is 0 if the asker may not see the
	// total.
	OtherAhead int
}

// Largest has at most so many of each list; the others are added to the counts.
func (l LevelHolders) Largest(most int) LevelHolders {
	for _, g := range l.Groups[min(len(l.Groups), most):] {
		l.Others = l.Others.Plus(g.Amount)
	}
	l.Groups = l.Groups[:min(len(l.Groups), most)]
	l.OtherAllocations += max(0, len(l.Allocations)-most)
	l.Allocations = l.Allocations[:min(len(l.Allocations), most)]
	l.OtherAhead += max(0, len(l.Ahead)-most)
	l.Ahead = l.Ahead[:min(len(l.Ahead), most)]
	return l
}

// HolderGroup is what one user holds at one node, of allocations with one owner.
type HolderGroup struct {
	// Node is where the claims are counted, User that of their requests, Owner that of the allocations; empty for none.
	Node, User, Owner string
	Amount            Amount
	// Claims is the number of claims that have it.
	Claims int
}

// Blocker is one allocation that holds what another request lacks, or one request that waits for it and comes first.
type Blocker struct {
	ID string
	// Node is where the larger part of the amount is counted, or of a request where it asks for it; Owner is that of the
	// allocation, User and Application are those of its request; empty for none.
	Node, User, Application, Owner string
	// Amount is what it holds of the limit, or at least needs; 0 for a request that waits for several resources at once.
	Amount Amount
	// Since is when the allocation was granted, or when the request arrived; SinceWall is the wall clock, for people.
	Since     Instant
	SinceWall int64
	// ExpiresAt is when the allocation ends, or the request leaves the queue, unless its caller renews, confirms or
	// repeats it; 0 if there is no such time.
	ExpiresAt Instant
	// Position is the place of a request in the queue, from 1; 0 for an allocation, and if the asker may not see how many
	// requests wait. Alternative is the number of the list of AnyOf that waits there; 0 if the request has none.
	Position, Alternative int
}
