package read

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/configure"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// Reader is read-only access to a ledger. It is valid only as long as its lender allows. All results are copies, except
// for specifications and histories, which are never changed in place.
//
// A reader without an identity sees everything. The answers of another have only what its caller may see: what is
// hidden is as if it did not exist. Its caller sees a node if it has any right there. Of the nodes above one that it
// sees it learns names, limits and totals, because its requests are counted there too, or less if the tree says so, see
// [quota.TenantsSee].
type Reader struct {
	state *state.State
	// id is nil if everything may be seen.
	id *access.Identity
	// wall is the wall time by which rights are decided, if it is later than that of the last command.
	wall int64
	// present is ledger time, if it is later than that of the last command.
	present quota.Instant
}

// New returns a reader that sees what an identity may see; everything without one.
func New(s *state.State, id *access.Identity) Reader { return Reader{state: s, id: id} }

// StateOf is the state that a reader lends to the layers above. It is not a method, so that other packages cannot call
// it.
func StateOf(r Reader) *state.State { return r.state }

// IdentityOf is whom a reader answers; nil if it sees everything.
func IdentityOf(r Reader) *access.Identity { return r.id }

// At is the reader at a wall time in milliseconds since 1970: credentials and bindings that end by then have ended. The
// ledger itself learns the time from commands alone, and there may have been none for long.
func (r Reader) At(wall int64) Reader {
	r.wall = wall
	return r
}

// AsOf is the reader at an instant of ledger time: that is what Now returns, so that a reader who computes a remaining
// time is not told too much. Nothing that is due by then has ended, so the reader is never later than the next instant
// at which the state changes by itself.
func (r Reader) AsOf(at quota.Instant) Reader {
	if due, waits := r.NextDue(); waits {
		at = min(at, due)
	}
	r.present = at
	return r
}

// WallNow is the wall time by which rights are decided.
func (r Reader) WallNow() int64 { return max(r.wall, r.state.Now.Wall) }

// Now is ledger time: that of the last command, or a later one of AsOf.
func (r Reader) Now() quota.Instant { return max(r.present, r.state.Now.At) }

// Book has accounts, tokens, refusals, the access section and the mode. It never changes, so it may be kept. Answers
// about it need rights of their own.
func (r Reader) Book() *access.Book { return r.state.Book }

// Revision is the number of the present configuration.
func (r Reader) Revision() uint64 { return r.state.History.Revision }

// TombstoneSpan is how long an ended allocation keeps its id.
func (r Reader) TombstoneSpan() quota.Span { return r.state.Bounds.TombstoneSpan }

// Counts are the sizes of the ledger, Cells and AllCells the nodes times resources of a tree and of all. They are for
// deciding how to read, and not for answers.
func (r Reader) Counts() quota.Counts {
	s := r.state
	return quota.Counts{
		Trees: len(s.Forest.Trees), Nodes: s.Forest.Nodes, Held: s.Allocations.Held.Len(),
		Ended: s.Allocations.Ended.Len(), Items: s.Inventory.Items.Len(), Waiting: s.Queue.All.Len(),
		Leases: s.Deadlines.Leases, Sizes: s.CurrentSizes(), MostLiveBytes: s.Bounds.LiveBytes,
	}
}

// Cells is the size of a tree, its nodes times its resources; 0 if it does not exist.
func (r Reader) Cells(name string) int {
	t := r.state.Forest.Trees[name]
	if t == nil {
		return 0
	}
	return configure.SizeOfTree(t) * len(t.Resources)
}

// AllCells is the size of all trees.
func (r Reader) AllCells() int {
	sum := 0
	for _, t := range r.state.Forest.Trees {
		sum += configure.SizeOfTree(t) * len(t.Resources)
	}
	return sum
}

// ReaderOf returns the reader of a caller; nil is one of whom nothing is known. The error is Unauthenticated if its
// credential is not valid.
func (r Reader) ReaderOf(caller *access.Caller) (Reader, *quota.Error) {
	if r.state.Book.Mode() != access.Guarded {
		return r, nil
	}
	if caller == nil {
		return Reader{}, quota.Errorf(quota.Unauthenticated, "", "the call does not say who asks for it")
	}
	id, err := r.state.Book.Identify(caller, r.WallNow())
	if err != nil {
		return Reader{}, quota.Errorf(quota.Unauthenticated, "", "%s", err.Error())
	}
	if id.Kind() == access.System {
		id = nil
	}
	r.id = id
	return r, nil
}

// ReaderOfUser is that of a user who is not calling, with the rights that it has now; see [access.Book.IdentifyUser].
// In an open cluster it sees everything, as every caller does.
func (r Reader) ReaderOfUser(user string) (Reader, *quota.Error) {
	if r.state.Book.Mode() != access.Guarded {
		return r, nil
	}
	id, err := r.state.Book.IdentifyUser(user, r.WallNow())
	if err != nil {
		return Reader{}, quota.Errorf(quota.Unauthenticated, "", "%s", err.Error())
	}
	r.id = id
	return r, nil
}

// FiltersHolders reports whether lists of allocations, of waiting requests and of events have only what the caller may
// see, because it may not read holders on the whole cluster. It follows from the rights of the caller alone, like the
// other answers of this kind, and never from what exists: otherwise it would tell that something hidden does.
func (r Reader) FiltersHolders() bool { return !r.May(access.HoldersRead, "", "") }

// FiltersTrees reports whether a list of trees has only those that the caller sees, see FiltersHolders.
func (r Reader) FiltersTrees() bool { return !r.seesNode(nil) }

// FiltersUsage reports whether the usage of a subtree has only nodes that the caller sees, see FiltersHolders: it may
// not read usage at the top.
func (r Reader) FiltersUsage(tree, path string) bool { return !r.May(access.UsageRead, tree, path) }

// FiltersRevisions reports whether a list of revisions has only changes that the caller may read, see FiltersHolders.
func (r Reader) FiltersRevisions() bool {
	return !r.May(access.HistoryRead, "", "") && !r.May(access.ConfigRead, "", "")
}

// May reports whether the caller has a verb at a node, or at the nearest above it that exists; with an empty tree, on
// the cluster.
func (r Reader) May(verb access.Verb, tree, node string) bool {
	return r.MayAt(verb, r.state.Forest.NearestNode(tree, node))
}

func (r Reader) MayAt(verb access.Verb, n *state.Node) bool {
	return r.id == nil || access.Allows(r.id, verb, r.WallNow(), r.state.Forest.PathAt(n))
}

func (r Reader) seesNode(n *state.Node) bool {
	return r.id == nil || access.VerbsAt(r.id, r.WallNow(), r.state.Forest.PathAt(n))&access.NodeVerbs != 0
}

func (r Reader) seesBelow(n *state.Node) bool {
	return r.seesNode(n) || slices.ContainsFunc(n.Children, r.seesBelow)
}

// seenOf is what the caller learns of the numbers of a node: all of them where it may read usage.
func (r Reader) seenOf(n *state.Node) quota.TenantsSee {
	if n == nil || n.Tree.Settings.TenantsSee == quota.SeeTotals || r.MayAt(access.UsageRead, n) {
		return quota.SeeTotals
	}
	return n.Tree.Settings.TenantsSee
}

// Require is a refusal if the caller lacks a verb at a node, or at the nearest above it that exists. A place that it
// does not see does not exist.
func (r Reader) Require(verb access.Verb, tree, path string) *quota.Error {
	return r.need(verb, tree, path)
}

// need is a refusal if the caller lacks a verb at a node. A place that it does not see does not exist; no tree stands
// for all of them, which is a place that exists for every caller.
func (r Reader) need(verb access.Verb, tree, path string) *quota.Error {
	if tree == "" {
		return r.needOnCluster(verb)
	}
	n := r.state.Forest.NearestNode(tree, path)
	switch {
	case r.MayAt(verb, n):
		return nil
	case n == nil || !r.seesNode(n):
		return state.LackingVerb(hiddenPlace(tree, path), verb, n)
	}
	return state.LackingVerb(quota.Errorf(quota.Forbidden, "",
		"you lack the right %s at %s; ask an administrator of it for a role", verb, quota.Place(tree, quota.Clip(path)),
	), verb, n)
}

// needOnCluster is a refusal if the caller lacks a verb on the cluster, for what concerns all nodes alike.
func (r Reader) needOnCluster(verb access.Verb) *quota.Error {
	if r.May(verb, "", "") {
		return nil
	}
	refusal := quota.Errorf(quota.Forbidden, "", "the call needs the right %s on the cluster", verb)
	return state.LackingVerb(refusal, verb, nil)
}

func hiddenPlace(tree, path string) *quota.Error {
	return quota.Errorf(quota.NotFound, "", "there is no %s, or you may not see it", state.KindAndPlace(tree, path))
}

// Allocation returns an allocation that the caller owns, or of which it may read the holder. For others the id does not
// exist. It has the user data if the caller owns the allocation or may read data.
func (r Reader) Allocation(id string) (quota.AllocationInfo, *quota.Error) {
	info, err := r.anyAllocation(id)
	if err == nil && !r.Sees(&info) {
		return quota.AllocationInfo{}, r.unknownAllocation(id)
	}
	seen := r.Redacted(info)
	if r.id != nil && (r.id.Is(info.Owner) || r.mayAtClaims(access.DataRead, info.Claims)) {
		seen.Data = info.Data
	}
	return seen, err
}

// Shown is what the caller may see of a record; false if it may not see it at all.
func (r Reader) Shown(a *state.Allocation) (quota.AllocationInfo, bool) {
	info := a.Info()
	return r.Redacted(info), r.Sees(&info)
}

func (r Reader) Sees(a *quota.AllocationInfo) bool {
	if r.id == nil || r.id.Is(a.Owner) {
		return true
	}
	return r.mayAtClaims(access.HoldersRead, a.Claims) && (a.Waiting == nil || r.mayAtAlternatives(a.Waiting.Alternatives))
}

// mayAtAlternatives is true if the caller may read holders at all claims that a request waits for.
func (r Reader) mayAtAlternatives(list []quota.WaitingPlace) bool {
	return !slices.ContainsFunc(list, func(at quota.WaitingPlace) bool {
		return !r.mayAtClaims(access.HoldersRead, at.Claims)
	})
}

func (r Reader) mayAtClaims(verb access.Verb, claims []quota.ClaimInfo) bool {
	return !slices.ContainsFunc(claims, func(c quota.ClaimInfo) bool { return !r.May(verb, c.Tree, c.Node) })
}

// Redacted drops user data, and the names of other allocations. User data may be credentials, so only an answer to a
// question for one id has it: lists and watches are kept and shown, and audit records tell of reads of one allocation.
func (r Reader) Redacted(info quota.AllocationInfo) quota.AllocationInfo {
	if r.id == nil {
		return info
	}
	info.Data = nil
	if info.Resize != nil && !r.id.Is(info.Owner) && !r.mayAtClaims(access.HoldersRead, info.Resize.Claims) {
		info.Resize = nil
	}
	if info.Waiting != nil {
		info.Waiting = r.shownWaiting(*info.Waiting)
	}
	if info.Resize != nil {
		resize := *info.Resize
		resize.Waiting = *r.shownWaiting(resize.Waiting)
		info.Resize = &resize
	}
	readsHolders := r.mayAtClaims(access.HoldersRead, info.Claims)
	if !readsHolders {
		info.Preempted, info.RevokedBy = r.hiddenVictims(info.Preempted), HiddenName(info.RevokedBy)
		if info.PreemptedBy != quota.DrainedBy {
			info.PreemptedBy = ""
		}
	}
	info.Reason = r.shownReason(info.Reason, readsHolders)
	return info
}

// shownWaiting is the place of a request in the queue without the level that blocks it where the tree does not show it.
// The position stays: it does not say at which level the others wait.
func (r Reader) shownWaiting(w quota.WaitingInfo) *quota.WaitingInfo {
	w.Line, w.BlockedAt = r.shownLine(w.Line, w.BlockedAt)
	w.Alternatives = slices.Clone(w.Alternatives)
	for i := range w.Alternatives {
		at := &w.Alternatives[i]
		at.Line, at.BlockedAt = r.shownLine(at.Line, at.BlockedAt)
	}
	return &w
}

func (r Reader) shownLine(line string, at quota.Subtree) (string, quota.Subtree) {
	n := r.state.Forest.NearestNode(at.Tree, at.Node)
	if r.seenOf(n) != quota.SeeNothing {
		return line, at
	}
	what, isOfNode := strings.CutSuffix(line, " at "+quota.Place(at.Tree, at.Node))
	if !isOfNode { // items, which are those of the whole tree
		return line, at
	}
	return what + " at a level above, in tree " + at.Tree, quota.Subtree{Tree: at.Tree}
}

// HiddenName keeps that there is one, and that it is a drain.
func HiddenName(name string) string {
	if name == "" || name == quota.DrainedBy {
		return name
	}
	return quota.HiddenAllocation
}

// Allocations returns up to max held allocations that the caller sees and that pass the filter, in the order of their
// fences, after a fence.
func (r Reader) Allocations(f quota.AllocationFilter, after uint64, max int) (quota.AllocationPage, *quota.Error) {
	page, err := r.seenAllocations(f, after, max)
	for i := range page.Allocations {
		page.Allocations[i] = r.Redacted(page.Allocations[i])
	}
	return page, err
}

// Items is a page of the items of a tree. It needs the right to read usage at the root; owners need that to read
// holders there, and user data that to read data.
func (r Reader) Items(f quota.ItemFilter, after *quota.ItemName, max int, data bool) (quota.ItemPage, *quota.Error) {
	if err := r.need(access.UsageRead, f.Tree, ""); err != nil {
		return quota.ItemPage{}, err
	}
	if f.Owner != "" {
		if err := r.need(access.HoldersRead, f.Tree, ""); err != nil {
			return quota.ItemPage{}, err
		}
	}
	page, err := r.allItems(f, after, max, data && r.May(access.DataRead, f.Tree, ""))
	page.Items = r.shownItems(page.Items)
	return page, err
}

// shownItems are items without their holders where the caller may not read holders and does not own the allocation.
func (r Reader) shownItems(list []quota.ItemInfo) []quota.ItemInfo {
	hidden := func(it quota.ItemInfo) bool {
		if it.Allocation == "" || r.May(access.HoldersRead, it.Tree, "") {
			return false
		}
		a := r.state.Allocations.FindByID(it.Allocation)
		return a == nil || !r.id.Is(a.Owner)
	}
	if !slices.ContainsFunc(list, hidden) {
		return list
	}
	list = slices.Clone(list)
	for i := range list {
		if it := &list[i]; hidden(*it) {
			it.Owner, it.Allocation, it.Fence, it.HeldUntil = "", "", 0, 0
		}
	}
	return list
}

// ItemCounts counts items by state and owner, see Items. Without the right to read holders, owners are left out.
func (r Reader) ItemCounts(tree, resource string) ([]quota.ItemCount, *quota.Error) {
	if err := r.need(access.UsageRead, tree, ""); err != nil {
		return nil, err
	}
	counts, err := r.itemCounts(tree, resource)
	if err == nil && !r.May(access.HoldersRead, tree, "") {
		for i := range counts {
			counts[i].Owners = nil
		}
	}
	return counts, err
}

// Principals shows use and limits of users or groups in a tree. It needs the right to read holders at the root.
func (r Reader) Principals(tree string, kind quota.HolderKind, name, after string, max int,
) ([]quota.PrincipalUsage, bool, *quota.Error) {
	if err := r.need(access.HoldersRead, tree, ""); err != nil {
		return nil, false, err
	}
	return r.allPrincipals(tree, kind, name, after, max)
}

// Events is a page of what happened lately, as far as the caller may read the holders, or of thresholds the usage.
func (r Reader) Events(f quota.EventFilter, max int) quota.EventPage {
	page := r.allEvents(f, max)
	if r.id == nil {
		return page
	}
	page.Events = slices.DeleteFunc(slices.Clone(page.Events), func(e quota.Event) bool { return !r.SeesEvent(&e) })
	for i, e := range page.Events {
		if e.Decision != nil {
			seen := r.RedactDecision(*e.Decision)
			page.Events[i].Decision = &seen
		}
		page.Events[i].Reason = r.shownReason(e.Reason, true)
	}
	return page
}

// ScheduledLimits are those at or below a node, at nodes whose configuration the caller may read.
func (r Reader) ScheduledLimits(tree, node string) []quota.ScheduledLimit {
	return slices.DeleteFunc(r.allScheduledLimits(tree, node),
		func(s quota.ScheduledLimit) bool { return !r.May(access.ConfigRead, s.Tree, s.Node) })
}

// ShownNodeEvent reports whether an event about a node may be shown: a scheduled limit where the reader may read the
// configuration, and others where it may read usage.
func (r Reader) ShownNodeEvent(e *quota.Event) bool { return r.SeesEvent(e) }

// SeesEvent is true for the denials of the caller's own requests, for what happened to holders that it may read, for
// thresholds where it may read usage, and for scheduled limits where it may read the configuration.
func (r Reader) SeesEvent(e *quota.Event) bool {
	if r.id == nil || r.id.Is(e.Owner) {
		return true
	}
	if e.Kind == quota.EventWebhookDead {
		return r.May(access.AuditRead, "", "")
	}
	if e.Crossing != nil {
		return r.ShownCrossing(e.Crossing)
	}
	if e.Tree != "" {
		return r.May(access.UsageRead, e.Tree, e.Node)
	}
	if e.Scheduled != nil {
		return r.May(access.ConfigRead, e.Scheduled.Limit.Tree, e.Scheduled.Limit.Node)
	}
	if e.Request != nil {
		return !e.Request.HasClaim(
			func(c quota.Claim) bool { return !r.May(access.HoldersRead, c.Tree, c.Node) })
	}
	if info, err := r.anyAllocation(e.ID); err == nil {
		return r.mayAtClaims(access.HoldersRead, info.Claims)
	}
	return r.May(access.HoldersRead, "", "")
}

// MayAct reports whether an activity of a node or of an itemized resource may be shown.
func (r Reader) MayAct(tree, node string) *quota.Error { return r.need(access.UsageRead, tree, node) }

// A dry run of a change of a large tree takes tens of milliseconds or more. It uses a copy of the ledger unless the
// copy costs more than it saves.
const (
	// minCopiedCells is the size of the trees, nodes times resources, below which a dry run takes a millisecond or two.
	minCopiedCells = 1_000
	// MaxCopied is how many allocations and items a copy may have.
	MaxCopied = 200_000
)

// WorthCopying reports whether dry runs of configuration changes should use CopyForPlans.
func (r Reader) WorthCopying() bool { return r.AllCells() > minCopiedCells && r.IsCopyable() }

// NeedsCopy reports whether Sandbox.WhatIf must use CopyForPlans: there are requests to evaluate, or it is worth it.
func (r Reader) NeedsCopy() bool {
	return r.IsCopyable() && (r.state.Queue.All.Len() > 0 || r.state.Journal.HasDenial() || r.WorthCopying())
}

func (r Reader) IsCopyable() bool {
	s := r.state
	return s.Allocations.Held.Len()+s.Queue.All.Len()+s.Inventory.Items.Len() <= MaxCopied
}
