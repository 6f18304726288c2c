package permit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/configure"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// RequestLimits opens a request for other limits of a node. It checks the names and not whether the limits fit, because
// an approver may make room first.
func (g Guard) RequestLimits(c quota.RequestLimits, m state.Mode) state.Outcome {
	user, err := g.requestUser()
	if err == nil {
		err = checkRequest(c)
	}
	if err != nil {
		return state.Outcome{Refused: err}
	}
	n, isSet, err := g.requestedNode(c)
	if err != nil {
		return state.Outcome{Refused: err}
	}
	open := c.Open
	if open == 0 {
		open = quota.DefaultRequestOpen
	}
	r := &quota.LimitRequest{
		Tree: c.Tree, Node: c.Node, NodeID: n.ID, Limits: slices.Clone(c.Limits), Asker: user, Reason: c.Reason,
		Made: *g.Now, Ends: g.Now.At + quota.Instant(open), State: quota.RequestOpen,
	}
	if known := g.requests.FindEqual(r, isSet); known != nil {
		return state.Outcome{LimitRequest: g.requestInfo(known), Repeated: true}
	}
	if isSet {
		return state.Outcome{Refused: quota.Errorf(quota.Invalid, "limits", "%s has these limits already; ask for others",
			n.Place())}
	}
	if err := g.checkOpenRequests(user); err != nil {
		return state.Outcome{Refused: err}
	}
	r.Number = g.requests.Last + 1
	p, notByRule := g.planByRule(r, n)
	if notByRule == "" && hasRule(n) {
		return g.applyByRule(r, n, p, m)
	}
	info := g.requestInfo(r)
	info.NotByRule = notByRule
	if m == state.CarryOut {
		g.requests.Add(r)
		g.noteRequest(nil, r)
	}
	return state.Outcome{LimitRequest: info}
}

// requestUser is the user of a command about requests. Without one, asker and approver could not be told apart.
func (g Guard) requestUser() (string, *quota.Error) {
	if g.Env.Book.Mode() == access.Open {
		return "", quota.Errorf(quota.InUse, "",
			"the cluster is open, so those who ask for limits and those who approve cannot be told apart; "+
				"begin with quorate token create and quorate access set watching, or set the limits directly")
	}
	if user := g.Caller.User(); user != "" && g.Caller.Rights != nil {
		return user, nil
	}
	return "", quota.Errorf(quota.Forbidden, "",
		"%s has no user; requests for limits need one, so call with a token or a certificate", g.Caller.Name())
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
func (g Guard) requestedNode(c quota.RequestLimits) (n *state.Node, isSet bool, err *quota.Error) {
	t := g.forest.Trees[c.Tree]
	if t == nil {
		return nil, false, quota.Errorf(quota.NotFound, "place.tree", "there is no tree %q", quota.Clip(c.Tree))
	}
	if n, err = configure.ConfiguredNode(t, c.Node, "place.node"); err != nil {
		return nil, false, err
	}
	swap, err := configure.WithLimits(n, c.Limits)
	if err != nil {
		return nil, false, err
	}
	return n, slices.Equal(swap.Limits, n.Limits), nil
}

func (g Guard) checkOpenRequests(user string) *quota.Error {
	switch all, own := g.requests.CountOpen(user); {
	case own >= g.Env.Bounds.RequestsOfOne:
		return quota.Errorf(quota.Full, "", "%s has %d open requests for limits; at most %d are allowed: withdraw one",
			user, own, g.Env.Bounds.RequestsOfOne)
	case all >= g.Env.Bounds.Requests:
		return quota.Errorf(quota.Full, "", "the cluster has %d open requests for limits; at most %d are allowed: "+
			"ask those who may set limits to decide about some", all, g.Env.Bounds.Requests)
	}
	return nil
}

// ApproveRequest counts an approval. Those that were given on other limits do not count any more. The last one that the
// tree wants plans the change anew and carries it out.
func (g Guard) ApproveRequest(c quota.ApproveRequest, m state.Mode) state.Outcome {
	user, r, out := g.beginDecision(c.Number)
	if r == nil {
		return out
	}
	if r.State != quota.RequestOpen {
		isRepeated := slices.ContainsFunc(r.Approvals,
			func(a quota.Approval) bool { return a.User == user && a.Digest == c.Digest })
		return g.alreadyClosed(r, isRepeated)
	}
	n, present, why := requestTarget(g.forest, r)
	if n == nil {
		return g.makeStale(r, user, why, m)
	}
	digest := state.RequestDigest(r, present)
	if c.Digest != digest {
		return state.Outcome{Refused: quota.Errorf(quota.RevisionMismatch, "digest",
			"request %d or the limits that it changes are not those that were shown: %s has %s now; look at it again", r.Number,
			n.Place(), quota.FormatLimits(present, n.Tree.UnitOf))}
	}
	approved := *r
	approved.Approvals = slices.DeleteFunc(slices.Clone(r.Approvals),
		func(a quota.Approval) bool { return a.Digest != digest })
	if slices.ContainsFunc(approved.Approvals, func(a quota.Approval) bool { return a.User == user }) {
		return state.Outcome{LimitRequest: g.requestInfo(r), Repeated: true}
	}
	approved.Approvals = append(approved.Approvals, quota.Approval{User: user, Digest: digest, Wall: g.Now.Wall})
	if len(approved.Approvals) >= n.Tree.Settings.ApprovalsNeeded() {
		return g.applyRequest(&approved, user, m)
	}
	if m == state.CarryOut {
		g.requests.Replace(&approved)
		g.noteRequest(r, &approved)
	}
	return state.Outcome{LimitRequest: g.requestInfo(&approved)}
}

// applyRequest sets the limits of a request with all its approvals, in the name of the last approver.
func (g Guard) applyRequest(r *quota.LimitRequest, user string, m state.Mode) state.Outcome {
	before := g.requests.Find(r.Number)
	p := g.plans.PlanLimits(quota.SetLimits{Tree: r.Tree, Node: r.Node, Limits: r.Limits})
	switch {
	case p.Refused != nil:
		return g.makeStale(r, user, p.Refused.Text, m)
	case len(p.Changes) == 0:
		return g.makeStale(r, user, "the limits are set already", m)
	}
	if out, refused := judgeChange(g.plans, quota.ChangeMeta{Actor: user, Reason: r.Reason}, p); refused {
		return out
	}
	return g.installRequest(before, r, user, p, m)
}

// installRequest carries out the plan of a request that has all its approvals. before is the request as it is stored;
// nil if it is new.
func (g Guard) installRequest(
	before, r *quota.LimitRequest, user string, p configure.Plan, m state.Mode,
) state.Outcome {
	meta := quota.ChangeMeta{Actor: user, Reason: r.Reason}
	p.Request = &quota.ApprovedRequest{Number: r.Number, Asker: r.Asker}
	for _, a := range r.Approvals {
		p.Request.Approvers = append(p.Request.Approvers, a.User)
	}
	answer := &quota.Configuration{Changes: p.Changes, Over: p.Over}
	if m == state.DryRun {
		answer.Effects = p.Effects()
		answer.Revision = g.history.Revision
		closed := *r
		closed.State, closed.ClosedBy, closed.Closed = quota.RequestApplied, user, *g.Now
		return state.Outcome{LimitRequest: g.requestInfo(&closed), Configuration: answer}
	}
	g.plans.Install(meta, p)
	answer.Revision = g.history.Revision
	r.Revision = answer.Revision
	if before == nil {
		g.requests.Add(r)
	}
	closed := g.requests.Close(r, quota.RequestApplied, user, "")
	g.noteRequest(before, closed)
	return state.Outcome{LimitRequest: g.requestInfo(closed), Configuration: answer}
}

func (g Guard) makeStale(r *quota.LimitRequest, user, why string, m state.Mode) state.Outcome {
	if m == state.DryRun {
		closed := *r
		closed.State, closed.ClosedBy, closed.ClosedReason, closed.Closed = quota.RequestStale, user, why, *g.Now
		return state.Outcome{LimitRequest: g.requestInfo(&closed)}
	}
	before := g.requests.Find(r.Number)
	closed := g.requests.Close(r, quota.RequestStale, user, why)
	g.noteRequest(before, closed)
	return state.Outcome{LimitRequest: g.requestInfo(closed)}
}

// RejectRequest closes a request of another user.
func (g Guard) RejectRequest(c quota.RejectRequest, m state.Mode) state.Outcome {
	if err := checkRequestReason(c.Reason); err != nil {
		return state.Outcome{Refused: err}
	}
	user, r, out := g.beginDecision(c.Number)
	if r == nil {
		return out
	}
	return g.closeByUser(r, quota.RequestRejected, user, c.Reason, m)
}

// WithdrawRequest closes a request of the caller.
func (g Guard) WithdrawRequest(c quota.WithdrawRequest, m state.Mode) state.Outcome {
	user, err := g.requestUser()
	if err != nil {
		return state.Outcome{Refused: err}
	}
	r := g.requests.Find(c.Number)
	if r == nil || r.Asker != user {
		return state.Outcome{Refused: g.unknownRequest(c.Number)}
	}
	return g.closeByUser(r, quota.RequestWithdrawn, user, "", m)
}

// closeByUser answers the first result when repeated.
func (g Guard) closeByUser(
	r *quota.LimitRequest, outcome quota.RequestState, user, reason string, m state.Mode,
) state.Outcome {
	if r.State != quota.RequestOpen {
		return g.alreadyClosed(r, r.State == outcome && r.ClosedBy == user)
	}
	if m == state.DryRun {
		closed := *r
		closed.State, closed.ClosedBy, closed.ClosedReason, closed.Closed = outcome, user, reason, *g.Now
		return state.Outcome{LimitRequest: g.requestInfo(&closed)}
	}
	closed := g.requests.Close(r, outcome, user, reason)
	g.noteRequest(r, closed)
	return state.Outcome{LimitRequest: g.requestInfo(closed)}
}

// beginDecision returns no request if the command is refused.
func (g Guard) beginDecision(number uint64) (string, *quota.LimitRequest, state.Outcome) {
	user, err := g.requestUser()
	if err != nil {
		return "", nil, state.Outcome{Refused: err}
	}
	r := g.requests.Find(number)
	switch {
	case r == nil:
		return "", nil, state.Outcome{Refused: g.unknownRequest(number)}
	case r.Asker == user:
		return "", nil, state.Outcome{Refused: quota.Errorf(quota.Forbidden, "id",
			"request %d is of %s itself; another user must decide about it, or withdraw it", number, user)}
	}
	return user, r, state.Outcome{}
}

func (g Guard) alreadyClosed(r *quota.LimitRequest, isRepeated bool) state.Outcome {
	if isRepeated {
		return state.Outcome{LimitRequest: g.requestInfo(r), Repeated: true}
	}
	return state.Outcome{Refused: quota.Errorf(quota.Ended, "id",
		"request %d is %s; only open requests can change", r.Number, r.State)}
}

// permitDecision asks for what setting the limits directly would need. A request that the caller may neither decide
// about nor see does not exist.
func (g Guard) permitDecision(number uint64) *quota.Error {
	r := g.requests.Find(number)
	if r == nil {
		return g.UnknownID(g.unknownRequest(number))
	}
	if MayDecide(g.Caller.Rights, g.forest, r) {
		return nil
	}
	if r.Asker != g.Caller.User() && !g.May(access.AuditRead, nil) {
		return state.LackingVerb(g.unknownRequest(number), access.LimitsSet, nil)
	}
	return state.LackingVerb(quota.Errorf(quota.Forbidden, "id",
		"%s may not set the limits of %s, and so not decide about request %d", g.Caller.Name(),
		quota.Place(r.Tree, r.Node), number), access.LimitsSet, g.forest.NearestNode(r.Tree, r.Node))
}

func (g Guard) permitWithdrawal(number uint64) *quota.Error {
	switch r := g.requests.Find(number); {
	case r == nil:
		return g.UnknownID(g.unknownRequest(number))
	case r.Asker != g.Caller.User():
		return g.unknownRequest(number)
	}
	return nil
}

func (g Guard) unknownRequest(number uint64) *quota.Error {
	return quota.Errorf(quota.NotFound, "id", "there is no request for limits %d, or %s may not see it", number,
		g.Caller.Name())
}

// MayDecide is true if a caller may set the limits that a request names. If its node does not exist any more, the
// nearest that exists counts, and in a tree that does not exist no caller may.
func MayDecide(id *access.Identity, f *state.Forest, r *quota.LimitRequest) bool {
	if id == nil {
		return true
	}
	n := f.NearestNode(r.Tree, r.Node)
	if n == nil {
		return false
	}
	path, change := f.PathAt(n), access.FieldChange{Field: access.LimitField}
	if n.Path == r.Node {
		change.IsRoot = n.Parent == nil
	} else {
		path = append(access.Path{nil}, path...)
	}
	if _, denied := change.FirstDenied(id, f.Now.Wall, path); denied {
		return false
	}
	return access.Allows(id, access.ConfigRead, f.Now.Wall, path)
}

// noteRequest notes the change of a request for the audit records, before the changes that it made.
func (g Guard) noteRequest(before, after *quota.LimitRequest) {
	g.journal.Changes = append([]quota.Change{RequestChange(g.forest, before, after)}, g.journal.Changes...)
}

// RequestChange is the change of a request in audit records. before is nil for a new one.
func RequestChange(f *state.Forest, before, after *quota.LimitRequest) quota.Change {
	c := quota.Change{
		Kind: quota.Changed, Tree: after.Tree, Node: after.Node, Field: fmt.Sprintf("request %d", after.Number),
		After: requestText(f, after),
	}
	if before == nil {
		c.Kind = quota.Added
	} else {
		c.Before = requestText(f, before)
	}
	return c
}

func requestText(f *state.Forest, r *quota.LimitRequest) string {
	unitOf := func(string) quota.Unit { return quota.Count }
	if t := f.Trees[r.Tree]; t != nil { // a request outlives its tree
		unitOf = t.UnitOf
	}
	text := fmt.Sprintf("%s: %s for %s", r.State, quota.FormatLimits(r.Limits, unitOf), r.Asker)
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

func (g Guard) requestInfo(r *quota.LimitRequest) *quota.LimitRequestInfo {
	info := InfoOfRequest(g.forest, g.Caller.Rights, g.Env.Now.Wall, r)
	return &info
}

// InfoOfRequest is a request as a caller sees it; without an identity all of it. Why the limits do not fit may tell of
// other nodes, so those who may not read the configuration of the parent learn only that they do not.
func InfoOfRequest(f *state.Forest, id *access.Identity, wall int64, r *quota.LimitRequest) quota.LimitRequestInfo {
	info := quota.LimitRequestInfo{LimitRequest: *r}
	info.MayDecide = (id == nil || !id.Is(r.Asker)) && MayDecide(id, f, r)
	parent := f.NearestNode(r.Tree, quota.ParentPath(r.Node))
	if r.State == quota.RequestStale && id != nil && !access.Allows(id, access.ConfigRead, wall, f.PathAt(parent)) {
		info.ClosedReason = "the limits cannot be set any more; ask an administrator of the parent"
	}
	if r.State != quota.RequestOpen {
		return info
	}
	n, present, _ := requestTarget(f, r)
	if n == nil {
		return info
	}
	info.Present, info.Digest = present, state.RequestDigest(r, present)
	info.Needed = n.Tree.Settings.ApprovalsNeeded()
	info.Approvals = slices.DeleteFunc(slices.Clone(r.Approvals),
		func(a quota.Approval) bool { return a.Digest != info.Digest })
	return info
}

// requestTarget is the node of a request with its present limits for the resources of the request. If the node or a
// resource does not exist any more, why says so.
func requestTarget(f *state.Forest, r *quota.LimitRequest) (n *state.Node, present []quota.ResourceLimit, why string) {
	t := f.Trees[r.Tree]
	if t == nil {
		return nil, nil, fmt.Sprintf("there is no tree %s any more", r.Tree)
	}
	n = t.ByPath[r.Node]
	if n == nil || n.Dynamic || n.ID != r.NodeID {
		return nil, nil, fmt.Sprintf("the node that was at %s was moved or removed", quota.Place(r.Tree, r.Node))
	}
	for _, limit := range r.Limits {
		resource := t.Resource(limit.Resource)
		if resource == nil {
			return nil, nil, fmt.Sprintf("tree %s has no resource %s any more", r.Tree, limit.Resource)
		}
		present = append(present, quota.ResourceLimit{Resource: limit.Resource, Limit: n.Limits[resource.Index]})
	}
	return n, present, ""
}
