package quota

// HeldItem is an item of an allocation.
type HeldItem struct {
	Resource, Name, State string
	// Data are the item's user data, sorted by key.
	Data []Label
	// UpdatedWall is the wall clock, for people.
	UpdatedWall int64
}

// ItemInfo is a copy of one item for readers.
type ItemInfo struct {
	ItemName
	State string
	// Owner is the user of the allocation that holds the item, Allocation its id and Fence its fence; all are empty if the
	// item is not held.
	Owner, Allocation string
	Fence             uint64
	// HeldUntil is when that allocation ends unless it is renewed; 0 if the item is not held, or without an end.
	HeldUntil Instant
	Data      []Label
	// Updated is the time of the last change of state, owner or data, or of the holder's last renewal.
	Updated     Instant
	UpdatedWall int64
	// Expires is when the item is removed unless it is held; 0 for never.
	Expires     Instant
	ExpiresWall int64
	// Leaving is true if the configuration does not list the item any more.
	Leaving bool
}

// ItemFilter selects items of one tree; all given conditions must be met.
type ItemFilter struct {
	Tree, Resource, State, Name, Owner string
}

// ItemPage is one page of items, by resource and then by name.
type ItemPage struct {
	Items []ItemInfo
	// Next is the item to continue after; nil on the last page.
	Next *ItemName
}

// ItemCount is the usage of one itemized resource.
type ItemCount struct {
	Tree, Resource string
	// States counts items by state, Owners by holding user; the empty name counts items that are not held. Both are
	// sorted.
	States, Owners []NamedCount
	// Waiting is the number of requests that wait for items of the resource.
	Waiting int
}

// NamedCount is a number with the name of what it counts.
type NamedCount struct {
	Name  string
	Count int
}
