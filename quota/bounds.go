package quota

// Bounds are the declared sizes of a ledger. All replicas must use the same: they decide what is refused.
type Bounds struct {
	Trees          int // trees in the ledger
	Nodes          int // nodes in the ledger, roots included
	NodesPerTree   int // nodes in one tree, the root included
	Depth          int // levels below the root
	Resources      int // registered resources of a tree
	Claims         int // claims of a request
	Labels         int // labels of a node or an allocation
	Held           int // allocations held at once
	Ended          int // ended allocations remembered; beyond the bound the oldest is forgotten early
	Revisions      int // configuration changes remembered
	TreesPerChange int // trees in one ApplyTrees
	Principals     int // entries of principal limits at a node, and names in one entry
	Groups         int // groups of a principal
	Moves          int // moves of a tree in one ApplyTrees
	Events         int // events remembered
	HistoryNodes   int // node specifications kept in the history for a rollback
	Cells          int // nodes of a tree times its resources
	Items          int // items in the ledger
	ItemsOfOne     int // items of one resource
	Picks          int // items of a request
	Turns          int // turns of a resource
	Data           int // pairs of user data
	Waiting        int // requests in the queue
	Policies       int // policies that the configuration defines
	Requests       int // open requests for limits
	RequestsOfOne  int // open requests for limits of one user
	ClosedRequests int // closed requests for limits remembered
	Scheduled      int // scheduled limits
	// FreeBytes is the size up to which an allocation, a waiting request or an item does not count against LiveBytes.
	FreeBytes int64
	// LiveBytes bounds trees, items, held allocations and waiting requests together, see [Sizes]. Beyond the other three
	// bounds the oldest tombstones, revisions and events are forgotten early.
	LiveBytes, EndedBytes, HistoryBytes, EventBytes int64
	// TombstoneSpan is how long an ended allocation keeps its id. A late retry within it learns that the allocation has
	// ended.
	TombstoneSpan Span
}

// Parts of bounds that one user may use, as one part in so many, unless the cluster is open.
const (
	// WaitingPerUser is for requests in the queue.
	WaitingPerUser = 10
	// DenialsPerUser is for events of denials, and for their bytes. Beyond it the oldest of the user is forgotten early.
	DenialsPerUser = 10
)

// DefaultBounds are the bounds of every released version; changing one needs a new feature level.
func DefaultBounds() Bounds {
	return Bounds{
		Trees: 1_000, Nodes: 100_000, NodesPerTree: 20_000, Depth: 16, Resources: 512, Cells: 4_000_000,
		Claims: 32, Labels: 32,
		Held: 20_000_000, Ended: 1_000_000, Revisions: 1_000, TreesPerChange: 100,
		Principals: 1_000, Groups: 256, Moves: 1_000, Events: 10_000, HistoryNodes: 200_000,
		Items: 100_000, ItemsOfOne: 10_000, Picks: 1_000, Turns: 16, Data: 64, Waiting: 50_000,
		Policies: 100, Requests: 1_000, RequestsOfOne: 20, ClosedRequests: 1_000, Scheduled: 1_000,
		FreeBytes: 512, LiveBytes: 704 << 20, EndedBytes: 128 << 20, HistoryBytes: 128 << 20, EventBytes: 64 << 20,
		TombstoneSpan: 10 * 60 * 1000,
	}
}

// Maximum lengths of texts, in bytes.
const (
	MaxName = 63
	MaxPath = 1024
	MaxID   = 128
	// MaxNamespace bounds names of namespaces, as those of users.
	MaxNamespace  = 256
	MaxLabelKey   = 63
	MaxLabelValue = 256
	MaxActor      = 128
	MaxReason     = 1024
	// MaxParts bounds the parts of one Split.
	MaxParts     = 32
	MaxPrincipal = 256
	// RecentDenials is how long a denial counts as recent, in milliseconds.
	RecentDenials = 10 * 60 * 1000
	// MaxRevisionChanges is the number of changes of one revision that the history keeps.
	MaxRevisionChanges = 200
)

// Maximum lengths of texts, in bytes, continued.
const (
	MaxItemName  = 253
	MaxItemState = 63
	// MaxData bounds the keys and values of user data together.
	MaxData = 16 << 10
)

// Spans of leases and of the queue.
const (
	MaxTTL      Span = 7 * 24 * 60 * 60 * 1000
	MaxGrace    Span = 60 * 60 * 1000
	MaxWait     Span = 7 * 24 * 60 * 60 * 1000
	MinKeep     Span = 1000
	MaxKeep     Span = 60 * 60 * 1000
	DefaultKeep Span = 2 * 60 * 1000
	// DefaultOvertake is how long later requests may overtake the first request of a queue.
	DefaultOvertake Span = 5 * 60 * 1000
	MaxOvertake     Span = 7 * 24 * 60 * 60 * 1000
)

// Bounds of requests for limits, and of the approvals that a tree may want.
const (
	MaxRequestLimits = 64
	MaxRequestReason = 512
	MaxApprovals     = 10

	DefaultRequestOpen Span = 14 * 24 * 60 * 60 * 1000
	MaxRequestOpen     Span = 90 * 24 * 60 * 60 * 1000

	MaxAutoApprovePercent      = 100
	MinAutoApproveEvery   Span = 60 * 60 * 1000
	MaxAutoApproveEvery   Span = 366 * 24 * 60 * 60 * 1000
)

// Bounds of Changes and of its query.
const (
	MaxChangedTrees = 256
	MaxChangedNodes = 256 // of one tree
	MaxChangedNames = 2_048
	MaxWatchedTrees = 64
)

// MaxUsagePercent is the largest share of a limit that a UsageQuery can ask for.
const MaxUsagePercent = 1_000

// AutoApprover is the user that approves requests for limits by the rule of a node. No caller can have this name.
const AutoApprover = "system/auto-approve"

// MaxCivilTime is the end of the year 9999, in milliseconds since 1970.
const MaxCivilTime = 253_402_300_799_999

// Bounds of scheduled limits.
const (
	MaxAdjustments = 64
	MaxWindows     = 64
	MaxRule        = 128
	// MinWindow is the shortest window: a second.
	MinWindow CivilTime = 1000
	// MaxFamilyInstants bounds the instants at which the limits of one resource, of a node and its children, may change.
	MaxFamilyInstants = 1000
	// MaxWarning is how long before the end of a window the warning comes, or half of the window if that is shorter.
	MaxWarning CivilTime = 60 * 60 * 1000
)

// MaxReserve is the longest duration of a reservation: an hour.
const MaxReserve Span = 60 * 60 * 1000

// MaxHolds is the largest number of nodes on hold. MaxHold is the longest hold that ends by itself: a year.
const (
	MaxHolds      = 1000
	MaxHold  Span = 366 * 24 * 60 * 60 * 1000
)

// MaxFor is the longest declared time of an allocation: a year.
const MaxFor Span = 366 * 24 * 60 * 60 * 1000

// MaxReasonAmounts bounds the resources of a Reason. MaxPreempted bounds the others that an allocation names as those
// who made room for it; a reservation names all of them until it is confirmed.
const (
	MaxReasonAmounts = 8
	MaxPreempted     = 100
)

// MaxHolderGroups bounds the holders that an explanation names for one violated limit.
const MaxHolderGroups = 20

// MaxBlockers bounds the allocations, and the requests ahead, that an explanation names for one violated limit.
const MaxBlockers = 20

// MaxDenialHolders bounds each of these in a denial, which travels in the header of an answer.
const MaxDenialHolders = 5

// MaxExpire is the largest number of records that one Expire may end or change.
const MaxExpire = 1024

// MaxLifespan is the longest lifespan of an item, and the longest delay before a turn: 366 days.
const MaxLifespan Span = 366 * 24 * 60 * 60 * 1000

// FirstFormat is the format of the first release: of the log and of snapshots, and the lowest feature level of a
// cluster (docs/adr/0134). Members of one cluster run different versions during an upgrade, so a rule that changes the
// effect of a command takes effect at the same log entry on all of them: at the one that raises the cluster to the
// rule's format.
const FirstFormat uint32 = 1
