package ledger

import (
	"github.com/quorate/quorate/access"
	"github.com/quorate/quorate/quota"
)

// guard decides what the caller of a command may do, and changes the book. It is to access what planner is to the
// configuration. The fields are in front of those of the ledger with the same names, because a command that is not
// being carried out has a caller and a time of its own.
type guard struct {
	*Ledger

	caller *caller
	// path is memory for pathOf.
	path *access.Path
	now  quota.Stamp
}

// guard decides for the command that is being carried out.
func (l *Ledger) guard() guard {
	return guard{l, &l.caller, &l.accessPath, l.now}
}

// beginCaller sets the caller of a command. A guarded ledger refuses one whose credential does not hold; a watching one
// notes it.
func (l guard) beginCaller(from Origin) *quota.Error {
	*l.caller = caller{who: from.Caller}
	if l.book.Mode() == access.Open {
		return nil
	}
	if l.identified.holds(from.Caller, l.book, l.now.Wall) {
		l.caller.rights = l.identified.id
		return nil
	}
	id, err := l.identify(from.Caller)
	if err != nil {
		return l.forbid(err)
	}
	l.caller.rights = id
	l.identified = identified{from.Caller, l.book, l.now.Wall, id}
	return nil
}

// identify refuses a caller whose credential does not hold.
func (l guard) identify(by *access.Caller) (*access.Identity, *quota.Error) {
	if by == nil {
		return nil, quota.Errorf(quota.Unauthenticated, "", "the command does not say who asks for it")
	}
	id, err := l.book.Identify(by, l.now.Wall)
	if err != nil {
		return nil, quota.Errorf(quota.Unauthenticated, "", "%s", err.Error())
	}
	return id, nil
}

// endCaller forgets the caller of a command, and answers what a guarded ledger would have refused.
func (l guard) endCaller() *quota.Error {
	refusal := l.caller.refusal
	*l.caller = caller{}
	return refusal
}

// forbid returns a refusal that counts in a guarded ledger. A watching one notes the first of a command.
func (l guard) forbid(err *quota.Error) *quota.Error {
	if err == nil || l.book.Mode() == access.Guarded {
		return err
	}
	if l.caller.refusal == nil {
		l.caller.refusal = err
	}
	return nil
}

// hasShare reports whether the caller is a user who may have only a part of what all users share. In an open ledger
// none is.
func (l guard) hasShare() bool {
	return l.book.Mode() != access.Open && l.caller.who != nil && l.caller.who.IsUser()
}

// ownerName is the owner of what the caller is granted.
func (l guard) ownerName() string {
	user := l.caller.user()
	if user == "" {
		return ""
	}
	if l.owners == nil || len(l.owners) >= maxOwners {
		l.owners = map[string]string{}
	}
	if known, found := l.owners[user]; found {
		return known
	}
	l.owners[user] = user
	return user
}

// maxOwners bounds the names of owners that allocations share.
const maxOwners = 10_000

// pathOf are the tables of bindings from a node up, and that of the cluster. It is valid until the next call.
func (l guard) pathOf(n *node) access.Path {
	path := (*l.path)[:0]
	for ; n != nil; n = n.parent {
		path = append(path, n.bindings)
	}
	*l.path = append(path, l.book.Cluster())
	return *l.path
}

// may is true if the caller has a verb at a node, or on the cluster if the node is nil.
func (l guard) may(verb access.Verb, n *node) bool {
	id := l.caller.rights
	return id == nil || access.Allows(id, verb, l.now.Wall, l.pathOf(n))
}

// sees is true if the caller has any right at a node. To others the node does not exist.
func (l guard) sees(n *node) bool {
	id := l.caller.rights
	return id == nil || access.VerbsAt(id, l.now.Wall, l.pathOf(n))&access.NodeVerbs != 0
}

// nearestNode is the node at a place, or the nearest above it that exists; nil in a tree that does not exist.
func (f *forest) nearestNode(tree, path string) *node {
	if t := f.trees[tree]; t != nil {
		return t.nearest(path)
	}
	return nil
}

// needVerb refuses a caller without a verb at a place, which need not exist. It says what is missing only to callers
// who have some right there; for others the place is one that does not exist.
func (l guard) needVerb(verb access.Verb, tree, path, field string) *quota.Error {
	n := l.forest.nearestNode(tree, path)
	switch {
	case l.may(verb, n):
		return nil
	case n == nil || !l.sees(n):
		return lackingVerb(l.hiddenPlace(tree, path, field), verb, n)
	}
	return l.lacksVerb(verb, n, quota.Place(tree, path), field)
}

// lacksVerb is the refusal of a caller who sees a node and may not do something there, or at a place below it that does
// not exist. The node is nil for the cluster.
func (l guard) lacksVerb(verb access.Verb, n *node, place, field string) *quota.Error {
	return lackingVerb(quota.Errorf(quota.Forbidden, field,
		"%s lacks the right %s at %s; ask an administrator of it for a role", l.caller.name(), verb, place), verb, n)
}

// lackingVerb notes in a refusal which verb is missing, and at which node.
func lackingVerb(err *quota.Error, verb access.Verb, n *node) *quota.Error {
	err.Verb = verb
	if n != nil {
		err.Place = n.place()
	}
	return err
}

// hiddenPlace is the refusal of a place that does not exist, or that the caller may not see.
func (l guard) hiddenPlace(tree, path, field string) *quota.Error {
	return quota.Errorf(quota.NotFound, field, "there is no %s, or %s may not see it", kindAndPlace(tree, path),
		l.caller.name())
}

// kindAndPlace is a place behind what it is: "tree cern" or "node cern:atlas".
func kindAndPlace(tree, path string) string {
	kind := "node"
	if path == "" {
		kind = "tree"
	}
	return kind + " " + quota.Place(tree, quota.Clip(path))
}

// managesAccess reports whether the caller has shown a credential that may manage access, whatever the mode.
func (l guard) managesAccess() bool {
	if l.caller.who == nil || l.caller.who.Kind == access.System || l.caller.who.Kind == access.Anonymous {
		return false
	}
	id, err := l.book.Identify(l.caller.who, l.now.Wall)
	return err == nil && access.Allows(id, access.AccessManage, l.now.Wall, l.pathOf(nil))
}

// needCluster refuses a caller without a verb on the cluster.
func (l guard) needCluster(verb access.Verb) *quota.Error {
	if l.may(verb, nil) {
		return nil
	}
	return l.lacksVerb(verb, nil, "the cluster", "")
}
