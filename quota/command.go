package quota

// Command is one change of the ledger: the closed list of everything that a log entry can ask for.
//
//sumtype:decl
type Command interface{ command() }

// Claim asks for amounts at one node of one tree.
type Claim struct {
	Tree string
	// Node is the path below the root; empty for the root.
	Node string
	// Amounts are sorted by resource. An amount of zero holds nothing and is still checked.
	Amounts Vector
}

// Allocate asks to hold all claims under an id that the caller chose, or nothing. Idempotent by id.
type Allocate struct {
	ID string
	// Claims name each node at most once. Several unknown nodes may all be counted at the same ancestor.
	Claims []Claim
	// Labels are sorted by key.
	Labels []Label
}

// Release ends an allocation. Idempotent.
type Release struct {
	ID string
}

// ChangeMeta goes with every change of configuration.
type ChangeMeta struct {
	// Actor and Reason are kept in the history.
	Actor, Reason string
	// RequestID optionally names the change; while the history remembers it, a repeat answers the first result.
	RequestID string
	// Fingerprint is a digest of the request's content, made by whoever receives it: it tells a repeat from another
	// request under the same RequestID.
	Fingerprint string
	// ExpectedRevision, if not nil, must be the present configuration revision.
	ExpectedRevision *uint64
}

// ApplyTrees makes each named tree exactly as specified, all or nothing. Nodes keep identity and usage by path.
type ApplyTrees struct {
	Meta  ChangeMeta
	Trees []TreeSpec
}

// SetLimits changes limits of one node; a limit of kind Unset removes it.
type SetLimits struct {
	Meta       ChangeMeta
	Tree, Node string
	// Limits are sorted by resource.
	Limits []ResourceLimit
}

// DeleteTree removes a tree in which nothing is held.
type DeleteTree struct {
	Meta ChangeMeta
	Tree string
}

func (Allocate) command()   {}
func (Release) command()    {}
func (ApplyTrees) command() {}
func (SetLimits) command()  {}
func (DeleteTree) command() {}
