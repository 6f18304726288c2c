package ledger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// requestLimits opens a request for other limits of a node. It checks the names and not whether the limits fit, because
// an approver may make room first.
func (g guard) requestLimits(c quota.RequestLimits, m mode) Outcome {
	user, err := g.requestUser()
	if err == nil {
		err = checkRequest(c)
	}
	if err != nil {
		return Outcome{Refused: err}
	}
	n, isSet, err := g.requestedNode(c)
	if err != nil {
		return Outcome{Refused: err}
	}
	open := c.Open
	if open == 0 {
		open = quota.DefaultRequestOpen
	}
	r := &quota.LimitRequest{
		Tree: c.Tree, Node: c.Node, NodeID: n.id, Limits: slices.Clone(c.Limits), Asker: user, Reason: c.Reason,
		Made: *g.now, Ends: g.now.At + quota.Instant(open), State: quota.RequestOpen,
	}
	if known := g.requests.findEqual(r, isSet); known != nil {
		return Outcome{LimitRequest: g.requestInfo(known), Repeated: true}
	}
	if isSet {
		return Outcome{Refused: quota.Errorf(quota.Invalid, "limits", "%s has these limits already; ask for others",
			n.place())}
	}
	if err := g.checkOpenRequests(user); err != nil {
		return Outcome{Refused: err}
	}
	r.Number = g.requests.last + 1
	p, notByRule := g.planByRule(r, n)
	if notByRule == "" && n.hasRule() {
		return g.applyByRule(r, n, p, m)
	}
	info := g.requestInfo(r)
	info.NotByRule = notByRule
	if m == carryOut {
		g.requests.add(r)
		g.noteRequest(nil, r)
	}
	return Outcome{LimitRequest: info}
}

// requestUser is the user of a command about requests. Without one, nobody could tell asker and approver apart.
func (g guard) requestUser() (string, *quota.Error) {
	if g.env.book.Mode() == access.Open {
		return "", quota.Errorf(quota.InUse, "",
			"the cluster is open, so those who ask for limits and those who approve cannot be told apart; "+
				"begin with quorate access bootstrap and quorate access guard watch, or set the limits directly")
	}
	if user := g.caller.user(); user != "" && g.caller.rights != nil {
		return user, nil
	}
	return "", quota.Errorf(quota.Forbidden, "",
		"%s has no user; requests for limits need one, so call with a token or a certificate", g.caller.name())
}

func checkRequest(c quota.RequestLimits) *quota.Error {
	if n := len(c.Limits); n < 1 || n > quota.MaxRequestLimits {
		return quota.Errorf(quota.Invalid, "limits", "the request names %d limits; 1 to %d are allowed", n,
			quota.MaxRequestLimits)
	}
	if c.Open < 0 || c.Open > quota.MaxRequestOpen {
		return quota.Errorf(quota.Invalid, "open_ms", "a request may be open for 1 to %d ms, not %d; 0 means %d",
			quota.MaxRequestOpen, c.Open, quota.DefaultRequestOpen)
	}
	return checkRequestReason(c.Reason)
}

func checkRequestReason(reason string) *quota.Error {
	if n := len(reason); n < 1 || n > quota.MaxRequestReason {
		return quota.Errorf(quota.Invalid, "reason", "the reason has %d bytes; 1 to %d are allowed", n,
			quota.MaxRequestReason)
	}
	return nil
}

// requestedNode is the node of a new request. isSet is true if it has the limits already.
func (g guard) requestedNode(c quota.RequestLimits) (n *node, isSet bool, err *quota.Error) {
	t := g.forest.trees[c.Tree]
	if t == nil {
		return nil, false, quota.Errorf(quota.NotFound, "place.tree", "there is no tree %q", quota.Clip(c.Tree))
	}
	if n, err = t.configured(c.Node, "place.node"); err != nil {
		return nil, false, err
	}
	swap, err := n.withLimits(c.Limits)
	if err != nil {
		return nil, false, err
	}
	return n, slices.Equal(swap.limits, n.limits), nil
}

func (g guard) checkOpenRequests(user string) *quota.Error {
	switch all, own := g.requests.countOpen(user); {
	case own >= g.env.bounds.RequestsOfOne:
		return quota.Errorf(quota.Full, "", "%s has %d open requests for limits; at most %d are allowed: withdraw one",
			user, own, g.env.bounds.RequestsOfOne)
	case all >= g.env.bounds.Requests:
		return quota.Errorf(quota.Full, "", "the cluster has %d open requests for limits; at most %d are allowed: "+
			"ask those who may set limits to decide about some", all, g.env.bounds.Requests)
	}
	return nil
}

// approveRequest counts an approval. Those that were given on other limits do not count any more. The last one that the
// tree wants plans the change anew and carries it out.
func (g guard) approveRequest(c quota.ApproveRequest, m mode) Outcome {
	user, r, out := g.beginDecision(c.Number)
	if r == nil {
		return out
	}
	if r.State != quota.RequestOpen {
		isRepeated := slices.ContainsFunc(r.Approvals,
			func(a quota.Approval) bool { return a.User == user && a.Digest == c.Digest })
		return g.alreadyClosed(r, isRepeated)
	}
	n, present, why := g.forest.requestTarget(r)
	if n == nil {
		return g.makeStale(r, user, why, m)
	}
	digest := requestDigest(r, present)
	if c.Digest != digest {
		return Outcome{Refused: quota.Errorf(quota.RevisionMismatch, "digest",
			"request %d or the limits that it changes are not those that were shown: %s has %s now; look at it again", r.Number,
			n.place(), quota.FormatLimits(present))}
	}
	approved := *r
	approved.Approvals = slices.DeleteFunc(slices.Clone(r.Approvals),
		func(a quota.Approval) bool { return a.Digest != digest })
	if slices.ContainsFunc(approved.Approvals, func(a quota.Approval) bool { return a.User == user }) {
		return Outcome{LimitRequest: g.requestInfo(r), Repeated: true}
	}
	approved.Approvals = append(approved.Approvals, quota.Approval{User: user, Digest: digest, Wall: g.now.Wall})
	if len(approved.Approvals) >= n.tree.settings.ApprovalsNeeded() {
		return g.applyRequest(&approved, user, m)
	}
	if m == carryOut {
		g.requests.replace(&approved)
		g.noteRequest(r, &approved)
	}
	return Outcome{LimitRequest: g.requestInfo(&approved)}
}

// applyRequest sets the limits of a request with all its approvals, in the name of the last approver.
func (g guard) applyRequest(r *quota.LimitRequest, user string, m mode) Outcome {
	before := g.requests.find(r.Number)
	p := g.plans.planLimits(quota.SetLimits{Tree: r.Tree, Node: r.Node, Limits: r.Limits})
	switch {
	case p.refused != nil:
		return g.makeStale(r, user, p.refused.Text, m)
	case len(p.changes) == 0:
		return g.makeStale(r, user, "the limits are set already", m)
	}
	if out, refused := g.plans.checkChange(quota.ChangeMeta{Actor: user, Reason: r.Reason}, p); refused {
		return out
	}
	return g.installRequest(before, r, user, p, m)
}

// installRequest carries out the plan of a request that has all its approvals. before is the request as it is stored;
// nil if it is new.
func (g guard) installRequest(before, r *quota.LimitRequest, user string, p plan, m mode) Outcome {
	meta := quota.ChangeMeta{Actor: user, Reason: r.Reason}
	p.request = &quota.ApprovedRequest{Number: r.Number, Asker: r.Asker}
	for _, a := range r.Approvals {
		p.request.Approvers = append(p.request.Approvers, a.User)
	}
	answer := &quota.Configuration{Changes: p.changes, Over: p.over}
	if m == dryRun {
		answer.Effects = p.effects()
		answer.Revision = g.history.revision
		closed := *r
		closed.State, closed.ClosedBy, closed.Closed = quota.RequestApplied, user, *g.now
		return Outcome{LimitRequest: g.requestInfo(&closed), Configuration: answer}
	}
	g.plans.install(meta, p)
	answer.Revision = g.history.revision
	r.Revision = answer.Revision
	if before == nil {
		g.requests.add(r)
	}
	closed := g.requests.close(r, quota.RequestApplied, user, "")
	g.noteRequest(before, closed)
	return Outcome{LimitRequest: g.requestInfo(closed), Configuration: answer}
}

// makeStale closes a request that cannot be carried out any more.
func (g guard) makeStale(r *quota.LimitRequest, user, why string, m mode) Outcome {
	if m == dryRun {
		closed := *r
		closed.State, closed.ClosedBy, closed.ClosedReason, closed.Closed = quota.RequestStale, user, why, *g.now
		return Outcome{LimitRequest: g.requestInfo(&closed)}
	}
	before := g.requests.find(r.Number)
	closed := g.requests.close(r, quota.RequestStale, user, why)
	g.noteRequest(before, closed)
	return Outcome{LimitRequest: g.requestInfo(closed)}
}

// rejectRequest closes a request of another user.
func (g guard) rejectRequest(c quota.RejectRequest, m mode) Outcome {
	if err := checkRequestReason(c.Reason); err != nil {
		return Outcome{Refused: err}
	}
	user, r, out := g.beginDecision(c.Number)
	if r == nil {
		return out
	}
	return g.closeByUser(r, quota.RequestRejected, user, c.Reason, m)
}

// withdrawRequest closes a request of the caller.
func (g guard) withdrawRequest(c quota.WithdrawRequest, m mode) Outcome {
	user, err := g.requestUser()
	if err != nil {
		return Outcome{Refused: err}
	}
	r := g.requests.find(c.Number)
	if r == nil || r.Asker != user {
		return Outcome{Refused: g.unknownRequest(c.Number)}
	}
	return g.closeByUser(r, quota.RequestWithdrawn, user, "", m)
}

// closeByUser closes an open request; repeated, it answers the first result.
func (g guard) closeByUser(r *quota.LimitRequest, state quota.RequestState, user, reason string, m mode) Outcome {
	if r.State != quota.RequestOpen {
		return g.alreadyClosed(r, r.State == state && r.ClosedBy == user)
	}
	if m == dryRun {
		closed := *r
		closed.State, closed.ClosedBy, closed.ClosedReason, closed.Closed = state, user, reason, *g.now
		return Outcome{LimitRequest: g.requestInfo(&closed)}
	}
	closed := g.requests.close(r, state, user, reason)
	g.noteRequest(r, closed)
	return Outcome{LimitRequest: g.requestInfo(closed)}
}

// beginDecision finds the request that a user decides about. The request is nil if the command is refused.
func (g guard) beginDecision(number uint64) (string, *quota.LimitRequest, Outcome) {
	user, err := g.requestUser()
	if err != nil {
		return "", nil, Outcome{Refused: err}
	}
	r := g.requests.find(number)
	switch {
	case r == nil:
		return "", nil, Outcome{Refused: g.unknownRequest(number)}
	case r.Asker == user:
		return "", nil, Outcome{Refused: quota.Errorf(quota.Forbidden, "id",
			"request %d is of %s itself; another user must decide about it, or withdraw it", number, user)}
	}
	return user, r, Outcome{}
}

func (g guard) alreadyClosed(r *quota.LimitRequest, isRepeated bool) Outcome {
	if isRepeated {
		return Outcome{LimitRequest: g.requestInfo(r), Repeated: true}
	}
	return Outcome{Refused: quota.Errorf(quota.Ended, "id", "request %d is %s; only open requests can change", r.Number,
		r.State)}
}

// permitDecision asks for what setting the limits directly would need. A request that the caller may neither decide
// about nor see does not exist.
func (g guard) permitDecision(number uint64) *quota.Error {
	r := g.requests.find(number)
	if r == nil {
		return g.unknownID(g.unknownRequest(number))
	}
	if mayDecide(g.caller.rights, g.forest, r) {
		return nil
	}
	if r.Asker != g.caller.user() && !g.may(access.AuditRead, nil) {
		return lackingVerb(g.unknownRequest(number), access.LimitsSet, nil)
	}
	return lackingVerb(quota.Errorf(quota.Forbidden, "id",
		"%s may not set the limits of %s, and so not decide about request %d", g.caller.name(),
		quota.Place(r.Tree, r.Node), number), access.LimitsSet, g.forest.nearestNode(r.Tree, r.Node))
}

func (g guard) permitWithdrawal(number uint64) *quota.Error {
	switch r := g.requests.find(number); {
	case r == nil:
		return g.unknownID(g.unknownRequest(number))
	case r.Asker != g.caller.user():
		return g.unknownRequest(number)
	}
	return nil
}

func (g guard) unknownRequest(number uint64) *quota.Error {
	return quota.Errorf(quota.NotFound, "id", "there is no request for limits %d, or %s may not see it", number,
		g.caller.name())
}

// mayDecide is true if a caller may set the limits that a request names. If its node does not exist any more, the
// nearest that exists counts, and in a tree that does not exist nobody may.
func mayDecide(id *access.Identity, f *forest, r *quota.LimitRequest) bool {
	if id == nil {
		return true
	}
	n := f.nearestNode(r.Tree, r.Node)
	if n == nil {
		return false
	}
	path, change := f.pathAt(n), access.FieldChange{Field: access.LimitField}
	if at := (changedNode{was: n, above: n.parent}); n.path == r.Node {
		change.IsRoot, change.ByParentOnly = n.parent == nil, at.parentDecides(access.LimitField)
	} else {
		path = append(access.Path{nil}, path...)
	}
	if _, denied := change.FirstDenied(id, f.now.Wall, path); denied {
		return false
	}
	return access.Allows(id, access.ConfigRead, f.now.Wall, path)
}

// noteRequest notes the change of a request for the audit records, before the changes that it made.
func (g guard) noteRequest(before, after *quota.LimitRequest) {
	g.journal.changes = append([]quota.Change{requestChange(before, after)}, g.journal.changes...)
}

// requestChange is the change of a request in audit records. before is nil for a new one.
func requestChange(before, after *quota.LimitRequest) quota.Change {
	c := quota.Change{
		Kind: quota.Changed, Tree: after.Tree, Node: after.Node, Field: fmt.Sprintf("request %d", after.Number),
		After: requestText(after),
	}
	if before == nil {
		c.Kind = quota.Added
	} else {
		c.Before = requestText(before)
	}
	return c
}

// requestText is a request in audit records.
func requestText(r *quota.LimitRequest) string {
	text := fmt.Sprintf("%s: %s for %s", r.State, quota.FormatLimits(r.Limits), r.Asker)
	users := make([]string, len(r.Approvals))
	for i, a := range r.Approvals {
		users[i] = a.User
	}
	if len(users) > 0 {
		text += "; approved by " + strings.Join(users, ", ")
	}
	if r.ClosedReason != "" {
		text += "; " + r.ClosedReason
	}
	return text
}

// requestInfo is a request for the caller of the present command.
func (g guard) requestInfo(r *quota.LimitRequest) *quota.LimitRequestInfo {
	info := Reader{ledger: g.plans.ledger, id: g.caller.rights}.requestInfo(r)
	return &info
}

// requestTarget is the node of a request with its present limits for the resources of the request. If the node or a
// resource does not exist any more, why says so.
func (f *forest) requestTarget(r *quota.LimitRequest) (n *node, present []quota.ResourceLimit, why string) {
	t := f.trees[r.Tree]
	if t == nil {
		return nil, nil, fmt.Sprintf("there is no tree %s any more", r.Tree)
	}
	n = t.byPath[r.Node]
	if n == nil || n.dynamic || n.id != r.NodeID {
		return nil, nil, fmt.Sprintf("the node that was at %s was moved or removed", quota.Place(r.Tree, r.Node))
	}
	for _, limit := range r.Limits {
		resource := t.resource(limit.Resource)
		if resource == nil {
			return nil, nil, fmt.Sprintf("tree %s has no resource %s any more", r.Tree, limit.Resource)
		}
		present = append(present, quota.ResourceLimit{Resource: limit.Resource, Limit: n.limits[resource.index]})
	}
	return n, present, ""
}
