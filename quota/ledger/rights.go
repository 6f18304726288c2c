package ledger

import (
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// callerRights answers what one caller may do, at one time. The caller and the time are those of the present command,
// or those of a reader who asks about a command that is not being carried out.
type callerRights struct {
	env    *environment // for the book; its caller and its time are those of the present command
	caller *caller
	now    *quota.Stamp
	// path is memory for pathOf.
	path access.Path
	// identified is the last identity of a caller.
	identified identified
}

// beginCaller sets the caller of a command. A guarded ledger refuses one whose credential does not hold; a watching one
// notes it.
func (r *callerRights) beginCaller(from Origin) *quota.Error {
	*r.caller = caller{who: from.Caller}
	if r.env.book.Mode() == access.Open {
		return nil
	}
	if r.identified.holds(from.Caller, r.env.book, r.now.Wall) {
		r.caller.rights = r.identified.id
		return nil
	}
	id, err := r.identify(from.Caller)
	if err != nil {
		return r.forbid(err)
	}
	r.caller.rights = id
	r.identified = identified{from.Caller, r.env.book, r.now.Wall, id}
	return nil
}

// identify refuses a caller whose credential does not hold.
func (r *callerRights) identify(by *access.Caller) (*access.Identity, *quota.Error) {
	if by == nil {
		return nil, quota.Errorf(quota.Unauthenticated, "", "the command does not say who asks for it")
	}
	id, err := r.env.book.Identify(by, r.now.Wall)
	if err != nil {
		return nil, quota.Errorf(quota.Unauthenticated, "", "%s", err.Error())
	}
	return id, nil
}

// endCaller forgets the caller of a command, and answers what a guarded ledger would have refused.
func (r *callerRights) endCaller() *quota.Error {
	refusal := r.caller.refusal
	*r.caller = caller{}
	return refusal
}

// forbid returns a refusal that counts in a guarded ledger. A watching one notes the first of a command.
func (r *callerRights) forbid(err *quota.Error) *quota.Error {
	if err == nil || r.env.book.Mode() == access.Guarded {
		return err
	}
	if r.caller.refusal == nil {
		r.caller.refusal = err
	}
	return nil
}

// pathOf are the tables of bindings from a node up, and that of the cluster. It is valid until the next call.
func (r *callerRights) pathOf(n *node) access.Path {
	path := r.path[:0]
	for ; n != nil; n = n.parent {
		path = append(path, n.bindings)
	}
	r.path = append(path, r.env.book.Cluster())
	return r.path
}

// may is true if the caller has a verb at a node, or on the cluster if the node is nil.
func (r *callerRights) may(verb access.Verb, n *node) bool {
	id := r.caller.rights
	return id == nil || access.Allows(id, verb, r.now.Wall, r.pathOf(n))
}

// sees is true if the caller has any right at a node. To others the node does not exist.
func (r *callerRights) sees(n *node) bool {
	id := r.caller.rights
	return id == nil || access.VerbsAt(id, r.now.Wall, r.pathOf(n))&access.NodeVerbs != 0
}

// lacksVerb is the refusal of a caller who sees a node and may not do something there, or at a place below it that does
// not exist. The node is nil for the cluster.
func (r *callerRights) lacksVerb(verb access.Verb, n *node, place, field string) *quota.Error {
	return lackingVerb(quota.Errorf(quota.Forbidden, field,
		"%s lacks the right %s at %s; ask an administrator of it for a role", r.caller.name(), verb, place), verb, n)
}

// hiddenPlace is the refusal of a place that does not exist, or that the caller may not see.
func (r *callerRights) hiddenPlace(tree, path, field string) *quota.Error {
	return quota.Errorf(quota.NotFound, field, "there is no %s, or %s may not see it", kindAndPlace(tree, path),
		r.caller.name())
}

// managesAccess reports whether the caller has shown a credential that may manage access, whatever the mode.
func (r *callerRights) managesAccess() bool {
	if r.caller.who == nil || r.caller.who.Kind == access.System || r.caller.who.Kind == access.Anonymous {
		return false
	}
	id, err := r.env.book.Identify(r.caller.who, r.now.Wall)
	return err == nil && access.Allows(id, access.AccessManage, r.now.Wall, r.pathOf(nil))
}

// needCluster refuses a caller without a verb on the cluster.
func (r *callerRights) needCluster(verb access.Verb) *quota.Error {
	if r.may(verb, nil) {
		return nil
	}
	return r.lacksVerb(verb, nil, "the cluster", "")
}

// unknownID is the refusal of what does not exist. A guarded ledger refuses it where it refuses what is hidden, before
// the command looks at anything else, so that nothing tells the two apart. A watching one leaves it to the command.
func (r *callerRights) unknownID(refused *quota.Error) *quota.Error {
	if r.env.book.Mode() != access.Guarded {
		return nil
	}
	return refused
}

// lackingVerb notes in a refusal which verb is missing, and at which node.
func lackingVerb(err *quota.Error, verb access.Verb, n *node) *quota.Error {
	err.Verb = verb
	if n != nil {
		err.Place = n.place()
	}
	return err
}

// kindAndPlace is a place behind what it is: "tree cern" or "node cern:atlas".
func kindAndPlace(tree, path string) string {
	kind := "node"
	if path == "" {
		kind = "tree"
	}
	return kind + " " + quota.Place(tree, quota.Clip(path))
}
