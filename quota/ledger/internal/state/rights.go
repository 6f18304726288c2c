package state

import (
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// CallerRights answers what one caller may do, at one time. The caller and the time are those of the present command,
// or those of a reader who asks about a command that is not being carried out.
type CallerRights struct {
	Env    *Environment // for the book; its caller and its time are those of the present command
	Caller *Caller
	Now    *quota.Stamp
	// Path is memory for PathOf.
	Path access.Path
	// identified is the last identity of a caller.
	identified identified
}

// BeginCaller sets the caller of a command. A guarded ledger refuses one whose credential is not valid; a watching one
// notes it.
func (r *CallerRights) BeginCaller(from Origin) *quota.Error {
	*r.Caller = Caller{Who: from.Caller}
	if r.Env.Book.Mode() == access.Open {
		return nil
	}
	if r.identified.holds(from.Caller, r.Env.Book, r.Now.Wall) {
		r.Caller.Rights = r.identified.id
		return nil
	}
	id, err := r.Identify(from.Caller)
	if err != nil {
		return r.Forbid(err)
	}
	r.Caller.Rights = id
	r.identified = identified{from.Caller, r.Env.Book, r.Now.Wall, id}
	return nil
}

// Identify refuses a caller whose credential is not valid.
func (r *CallerRights) Identify(caller *access.Caller) (*access.Identity, *quota.Error) {
	if caller == nil {
		return nil, quota.Errorf(quota.Unauthenticated, "", "the command does not say who asks for it")
	}
	id, err := r.Env.Book.Identify(caller, r.Now.Wall)
	if err != nil {
		return nil, quota.Errorf(quota.Unauthenticated, "", "%s", err.Error())
	}
	return id, nil
}

// EndCaller forgets the caller of a command, and answers what a guarded ledger would have refused.
func (r *CallerRights) EndCaller() *quota.Error {
	refusal := r.Caller.refusal
	*r.Caller = Caller{}
	return refusal
}

// Forbid returns a refusal that counts in a guarded ledger. A watching one notes the first of a command.
func (r *CallerRights) Forbid(err *quota.Error) *quota.Error {
	if err == nil || r.Env.Book.Mode() == access.Guarded {
		return err
	}
	if r.Caller.refusal == nil {
		r.Caller.refusal = err
	}
	return nil
}

// PathOf are the tables of bindings from a node up, and that of the cluster. It is valid until the next call.
func (r *CallerRights) PathOf(n *Node) access.Path {
	path := r.Path[:0]
	for ; n != nil; n = n.Parent {
		path = append(path, n.Bindings)
	}
	r.Path = append(path, r.Env.Book.Cluster())
	return r.Path
}

// May is true if the caller has a verb at a node, or on the cluster if the node is nil.
func (r *CallerRights) May(verb access.Verb, n *Node) bool {
	id := r.Caller.Rights
	return id == nil || access.Allows(id, verb, r.Now.Wall, r.PathOf(n))
}

// Sees is true if the caller has any right at a node. To others the node does not exist.
func (r *CallerRights) Sees(n *Node) bool {
	id := r.Caller.Rights
	return id == nil || access.VerbsAt(id, r.Now.Wall, r.PathOf(n))&access.NodeVerbs != 0
}

// LacksVerb is the refusal of a caller who sees a node and may not do something there, or at a place below it that does
// not exist. The node is nil for the cluster.
func (r *CallerRights) LacksVerb(verb access.Verb, n *Node, place, field string) *quota.Error {
	return LackingVerb(quota.Errorf(quota.Forbidden, field,
		"%s lacks the right %s at %s; ask an administrator of it for a role", r.Caller.Name(), verb, place), verb, n)
}

// HiddenPlace is the refusal of a place that does not exist, or that the caller may not see.
func (r *CallerRights) HiddenPlace(tree, path, field string) *quota.Error {
	return quota.Errorf(quota.NotFound, field, "there is no %s, or %s may not see it", KindAndPlace(tree, path),
		r.Caller.Name())
}

// NeedCluster refuses a caller without a verb on the cluster.
func (r *CallerRights) NeedCluster(verb access.Verb) *quota.Error {
	if r.May(verb, nil) {
		return nil
	}
	return r.LacksVerb(verb, nil, "the cluster", "")
}

// UnknownID is the refusal of what does not exist. A guarded ledger refuses it where it refuses what is hidden, before
// the command looks at anything else, so that nothing tells the two apart. A watching one leaves it to the command.
func (r *CallerRights) UnknownID(refused *quota.Error) *quota.Error {
	if r.Env.Book.Mode() != access.Guarded {
		return nil
	}
	return refused
}

// LackingVerb notes in a refusal which verb is missing, and at which node.
func LackingVerb(err *quota.Error, verb access.Verb, n *Node) *quota.Error {
	err.Verb = verb
	if n != nil {
		err.Place = n.Place()
	}
	return err
}

// KindAndPlace is a place behind what it is: "tree cern" or "node cern:atlas".
func KindAndPlace(tree, path string) string {
	kind := "node"
	if path == "" {
		kind = "tree"
	}
	return kind + " " + quota.Place(tree, quota.Clip(path))
}
