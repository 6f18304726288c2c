package state

import (
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/ordmap"
	"github.com/quorate/quorate/quota/policy"
)

// The ledger bounds the memory of its records in bytes (docs/adr/0057). The size of a record is an estimate that
// depends on its content only, so that all replicas compute the same value, including restored ones. Details that a
// snapshot does not preserve, such as texts shared by two records, do not count.

// Estimated sizes of parts of records, in bytes, without their texts.
const (
	recordBytes    = 192
	claimBytes     = 96
	componentBytes = 16
	rangeBytes     = 32
	pairBytes      = 32
	textBytes      = 16
	pickBytes      = 96
	heldItemBytes  = 96
	itemBytes      = 192
	eventBytes     = 192
	violationBytes = 144
	reasonBytes    = 208
	// reasonAmountBytes are those of one resource of a reason.
	reasonAmountBytes = 40
	revisionBytes     = 256
	changeBytes       = 96
	nodeBytes         = 640
	specBytes         = 256
	limitBytes        = 48
	cellBytes         = 64
)

// CurrentSizes are the present sizes.
func (s *State) CurrentSizes() quota.Sizes {
	return quota.Sizes{
		Allocations: s.Allocations.Held.bytes, Waiting: s.Queue.Bytes, Items: s.Inventory.Items.bytes,
		Trees: s.Forest.Bytes,
		Ended: s.Allocations.Ended.bytes, History: s.History.bytes, Events: s.Journal.bytes,
	}
}

// BoundsBytes is true if the bounds in bytes apply.
func (e *Environment) BoundsBytes() bool { return !e.Restoring }

// checkGrowth compares with LiveBytes.
func (s *State) checkGrowth(growth int64, field, wayOut string) *quota.Error {
	if growth <= 0 || !s.BoundsBytes() || s.CurrentSizes().Live()+growth <= s.Bounds.LiveBytes {
		return nil
	}
	return quota.Errorf(quota.Full, field, "this takes %d bytes beyond what is free for every record, and the ledger "+
		"has %d of at most %d such bytes; %s",
		growth, s.CurrentSizes().Live(), s.Bounds.LiveBytes, wayOut)
}

// CheckRequestGrowth is checkGrowth for an allocation or a waiting request.
func (s *State) CheckRequestGrowth(growth int64) *quota.Error {
	return s.checkGrowth(
		growth, "", "send fewer claims, labels or user data, or release allocations that have many; small requests "+
			"are still taken")
}

// CheckDataGrowth is checkGrowth for user data.
func (s *State) CheckDataGrowth(growth int64, field string) *quota.Error {
	return s.checkGrowth(growth, field, "keep less user data, or release allocations that have much")
}

// CheckTreeGrowth is checkGrowth for a change of configuration.
func (s *State) CheckTreeGrowth(growth int64) *quota.Error {
	return s.checkGrowth(
		growth, "trees", "configure fewer nodes, resources or principals, or release allocations that have many "+
			"labels or much user data")
}

// sized must not change its size while it is stored.
type sized interface{ Size() int64 }

// sizedMap is an ordered map that sums the sizes of its records beyond the free bytes of each.
type sizedMap[V sized] struct {
	ordmap.Map[V]

	free, bytes int64
}

func newSizedMap[V sized](free int64) sizedMap[V] { return sizedMap[V]{free: free} }

// Set stores a record, replacing the previous one.
func (m *sizedMap[V]) Set(key uint64, record V) {
	m.bytes += bytesBeyond(m.free, record)
	if previous, replaced := m.Map.Set(key, record); replaced {
		m.bytes -= bytesBeyond(m.free, previous)
	}
}

// Delete removes a record, if it is present.
func (m *sizedMap[V]) Delete(key uint64) {
	if removed, found := m.Map.Delete(key); found {
		m.bytes -= bytesBeyond(m.free, removed)
	}
}

func bytesBeyond(free int64, record sized) int64 { return max(0, record.Size()-free) }

// CountedSize is the size of a record beyond Bounds.FreeBytes.
func (e *Environment) CountedSize(record sized) int64 { return bytesBeyond(e.Bounds.FreeBytes, record) }

// DataGrowth is the growth of an allocation's counted size by a change of its user data.
func (e *Environment) DataGrowth(a *Allocation, change []quota.Label) int64 {
	data, size := a.Lease().Data, a.Size()
	after := size - sizeOfPairs(data) + sizeOfPairs(OverlayData(data, change))
	return max(0, after-e.Bounds.FreeBytes) - max(0, size-e.Bounds.FreeBytes)
}

// Size estimates the memory of the record in bytes. What others gave up for it does not count, because each of them is
// named by two allocations at most. Neither do its items, which it gets while it is stored.
func (a *Allocation) Size() int64 {
	n := recordBytes + int64(len(a.id)) + sizeOfPairs(a.Labels())
	for i := range a.Claims {
		n += a.Claims[i].size()
	}
	if a.Ended != nil {
		n += reasonSize(a.Ended.Reason)
	}
	if a.More == nil {
		return n
	}
	if b := a.More.Lease; b != nil {
		n += sizeOfPairs(b.AskedData) + sizeOfPairs(b.Data) + reasonSize(b.Reason)
	}
	if r := a.More.Resized; r != nil {
		n += int64(len(r.SplitFrom))
		for i := range r.First {
			n += claimSize(&r.First[i])
		}
		n += listsSize(r.AnyOf)
	}
	return n + sizeOfPrincipal(a.More.Principal)
}

func (c *PlacedClaim) size() int64 {
	n := int64(claimBytes + len(c.Asked.TreeName) + len(c.Asked.Path))
	if c.More == nil {
		return n + int64(len(c.Amounts))*componentBytes
	}
	picks := c.Picks()
	for _, p := range c.Amounts {
		if len(picks) == 0 || p.Resource.Unit != quota.Items {
			n += componentBytes
		}
	}
	for _, p := range picks {
		n += int64(pickBytes + len(p.Resource) + len(p.State) + len(p.HeldState) +
			max(p.Count, len(p.Names))*heldItemBytes)
		n += sizeOfTexts(p.Names)
	}
	return n
}

// Size is that of the record and of the original request, with all alternatives.
func (w *Waiter) Size() int64 { return 2 * w.Record.Size() }

func (it *Item) Size() int64 {
	return itemBytes + int64(len(it.Name)+len(it.State)) + sizeOfPairs(it.Data)
}

// ItemGrowth is the growth of counted sizes by a change of items.
func (e *Environment) ItemGrowth(list []*Item, updates []quota.ItemUpdate) int64 {
	growth := int64(0)
	for i, it := range list {
		updated := *it
		updated.Data = OverlayData(it.Data, updates[i].Data)
		if updates[i].State != "" {
			updated.State = updates[i].State
		}
		growth += e.CountedSize(&updated) - e.CountedSize(it)
	}
	return growth
}

func sizeOfPairs(list []quota.Label) int64 {
	n := int64(len(list)) * pairBytes
	for _, pair := range list {
		n += int64(len(pair.Key) + len(pair.Value))
	}
	return n
}

func sizeOfTexts(list []string) int64 {
	n := int64(len(list)) * textBytes
	for _, text := range list {
		n += int64(len(text))
	}
	return n
}

func sizeOfPrincipal(p quota.Principal) int64 {
	if p.User == "" {
		return 0
	}
	return int64(len(p.User)+len(p.Application)) + sizeOfTexts(p.Groups)
}

func EventSize(e *quota.Event) int64 {
	n := eventBytes + int64(len(e.ID)+len(e.By)+len(e.Owner)) + reasonSize(e.Reason)
	if s := e.Scheduled; s != nil {
		n += recordBytes + int64(len(s.Limit.Tree)+len(s.Limit.Node)+len(s.Limit.Reason)+len(s.Limit.Rule)) +
			int64(len(s.Limit.Adjustments)+len(s.Over)+len(s.Limit.Skipped))*violationBytes
		for _, w := range s.Limit.Skipped {
			n += int64(len(w.Reason))
		}
	}
	if r := e.Request; r != nil {
		n += recordBytes + int64(len(r.ID)) + sizeOfPairs(r.Labels) + sizeOfPrincipal(r.Principal)
		n += listsSize(r.Lists())
	}
	if c := e.Crossing; c != nil {
		n += violationBytes + int64(len(c.Tree)+len(c.Node)+len(c.Resource))
	}
	if d := e.Decision; d != nil {
		n += int64(len(d.Violations)) * violationBytes
		for _, v := range d.Violations {
			n += int64(len(v.Tree) + len(v.Node) + len(v.Resource) + len(v.Holder.Name) + len(v.Item))
		}
		for _, p := range d.Preempted {
			n += int64(3*textBytes + len(p.ID) + len(p.Tree) + len(p.Node))
		}
	}
	return n
}

func claimSize(c *quota.Claim) int64 {
	n := int64(claimBytes + len(c.Tree) + len(c.Node))
	for _, component := range c.Amounts {
		n += int64(componentBytes + len(component.Resource))
	}
	for _, r := range c.Ranges {
		n += int64(rangeBytes + len(r.Resource))
	}
	for _, p := range c.Picks {
		n += int64(pickBytes+len(p.Resource)+len(p.State)+len(p.HeldState)) + sizeOfTexts(p.Names)
	}
	return n
}

func listsSize(lists [][]quota.Claim) int64 {
	n := int64(0)
	for _, list := range lists {
		for i := range list {
			n += claimSize(&list[i])
		}
	}
	return n
}

func RevisionSize(r *quota.Revision) int64 {
	n := revisionBytes + int64(len(r.Actor)+len(r.Reason)+len(r.RequestID)+len(r.Fingerprint))
	for i := range r.Changes {
		c := &r.Changes[i]
		n += int64(changeBytes + len(c.Tree) + len(c.Node) + len(c.Field) + len(c.Before) + len(c.After))
	}
	for i := range r.Undo {
		n += treeUndoSize(&r.Undo[i])
	}
	for i := range r.UndoPolicies {
		n += PolicySpecSize(&r.UndoPolicies[i].PolicySpec)
	}
	if r.Subtree != nil {
		n += int64(2*textBytes + len(r.Subtree.Tree) + len(r.Subtree.Node))
	}
	if r.Request != nil {
		n += int64(textBytes+len(r.Request.Asker)) + sizeOfTexts(r.Request.Approvers)
	}
	return n
}

func treeUndoSize(u *quota.TreeUndo) int64 {
	n := int64(specBytes+len(u.Name)+len(u.Forest)) + sizeOfTexts(u.AddedPaths) + sizeOfResources(u.Resources)
	for i := range u.Nodes {
		n += nodeSpecSize(&u.Nodes[i])
	}
	for _, m := range u.Moves {
		n += int64(2*textBytes + len(m.From) + len(m.To))
	}
	return n
}

func sizeOfResources(list []quota.Resource) int64 {
	n := int64(0)
	for i := range list {
		n += resourceSize(&list[i])
	}
	return n
}

func resourceSize(r *quota.Resource) int64 {
	n := int64(specBytes + len(r.Name))
	if s := r.Items; s != nil {
		n += specBytes + sizeOfTexts(s.Names) + int64(len(s.Retired)+len(s.Removed))
		for _, t := range s.Turns {
			n += int64(2*textBytes + len(t.From) + len(t.To))
		}
	}
	return n
}

func nodeSpecSize(s *quota.NodeSpec) int64 {
	n := int64(specBytes+len(s.Path)+len(s.Policy)) + sizeOfPairs(s.Labels) + bindingsSize(s.Bindings)
	for _, limits := range [...][]quota.ResourceLimit{s.Limits, s.Defaults, s.Borrow, s.Lend} {
		for _, limit := range limits {
			n += int64(limitBytes + len(limit.Resource))
		}
	}
	n += int64(len(s.Thresholds.Percents)) * pairBytes
	for i := range s.Principals {
		p := &s.Principals[i]
		n += int64(specBytes+len(p.Description)) + sizeOfTexts(p.Users) + sizeOfTexts(p.Groups)
		for _, component := range p.Limits {
			n += int64(componentBytes + textBytes + len(component.Resource))
		}
	}
	return n
}

// Bytes is the size of a node in its tree.
func (n *Node) Bytes() int64 {
	cell := int64(cellBytes)
	if n.Thresholds != nil {
		cell += int64(len(n.Thresholds.Percents)) * componentBytes // as if all were crossed
	}
	return nodeBytes + nodeSpecSize(n.Spec) + int64(len(n.Tree.Resources))*cell
}

// Bytes is the size of a tree, 0 for nil. It visits all nodes.
func (t *Tree) Bytes() int64 {
	if t == nil {
		return 0
	}
	n := int64(specBytes + len(t.Name) + len(t.Settings.Forest))
	for _, r := range t.Resources {
		n += resourceSize(&r.Resource)
	}
	t.Root.Walk(func(at *Node) bool {
		n += at.Bytes()
		return true
	})
	return n
}

func bindingsSize(list []access.Binding) int64 {
	n := int64(0)
	for _, b := range list {
		n += bindingBytes + int64(len(b.Role)) + sizeOfTexts(b.HoldAs.Names)
		for _, s := range b.To {
			n += subjectBytes + int64(len(s.Name))
		}
	}
	return n
}

// Estimated bytes of a binding and of one of its subjects, with the compiled form.
const (
	bindingBytes = 256
	subjectBytes = 128
)

// Bytes is the size of the definitions, see quota.Sizes.
func (s *PolicySet) Bytes() int64 {
	n := int64(0)
	for i := range s.Specs {
		n += PolicySpecSize(&s.Specs[i])
	}
	return n
}

// PolicySpecSize is the size of a definition.
func PolicySpecSize(s *quota.PolicySpec) int64 {
	n := int64(specBytes + len(s.Name) + len(s.Base))
	for _, sw := range policy.Switches() {
		n += int64(len(*sw.Field(s)))
	}
	return n
}
