package ledger

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

// currentSizes are the present sizes.
func (l *Ledger) currentSizes() quota.Sizes {
	return quota.Sizes{
		Allocations: l.allocations.held.bytes, Waiting: l.queue.bytes, Items: l.inventory.items.bytes,
		Trees: l.forest.bytes,
		Ended: l.allocations.ended.bytes, History: l.history.bytes, Events: l.journal.bytes,
	}
}

// boundsBytes is true if the bounds in bytes apply.
func (e *environment) boundsBytes() bool { return !e.restoring }

// checkGrowth refuses a change that would exceed LiveBytes.
func (l *Ledger) checkGrowth(growth int64, field, wayOut string) *quota.Error {
	if growth <= 0 || !l.boundsBytes() || l.currentSizes().Live()+growth <= l.bounds.LiveBytes {
		return nil
	}
	return quota.Errorf(quota.Full, field, "this takes %d bytes beyond what is free for every record, and the ledger "+
		"has %d of at most %d such bytes; %s",
		growth, l.currentSizes().Live(), l.bounds.LiveBytes, wayOut)
}

// checkRequestGrowth is checkGrowth for an allocation or a waiting request.
func (l *Ledger) checkRequestGrowth(growth int64) *quota.Error {
	return l.checkGrowth(
		growth, "", "send fewer claims, labels or user data, or release allocations that have many; small requests "+
			"are still taken")
}

// checkDataGrowth is checkGrowth for user data.
func (l *Ledger) checkDataGrowth(growth int64, field string) *quota.Error {
	return l.checkGrowth(growth, field, "keep less user data, or release allocations that have much")
}

// checkTreeGrowth is checkGrowth for a change of configuration.
func (l *Ledger) checkTreeGrowth(growth int64) *quota.Error {
	return l.checkGrowth(
		growth, "trees", "configure fewer nodes, resources or principals, or release allocations that have many "+
			"labels or much user data")
}

// sized is a record with an estimated size. The size must not change while the record is stored.
type sized interface{ size() int64 }

// sizedMap is an ordered map that sums the sizes of its records beyond the free bytes of each.
type sizedMap[V sized] struct {
	ordmap.Map[V]

	free, bytes int64
}

func newSizedMap[V sized](free int64) sizedMap[V] { return sizedMap[V]{free: free} }

// Set stores a record, replacing the previous one.
func (m *sizedMap[V]) Set(key uint64, record V) {
	m.bytes += bytesBeyond(m.free, record)
	if was, replaced := m.Map.Set(key, record); replaced {
		m.bytes -= bytesBeyond(m.free, was)
	}
}

// Delete removes a record, if it is present.
func (m *sizedMap[V]) Delete(key uint64) {
	if was, found := m.Map.Delete(key); found {
		m.bytes -= bytesBeyond(m.free, was)
	}
}

// bytesBeyond is the size of a record beyond the free bytes.
func bytesBeyond(free int64, record sized) int64 { return max(0, record.size()-free) }

// countedSize is the size of a record beyond Bounds.FreeBytes.
func (e *environment) countedSize(record sized) int64 { return bytesBeyond(e.bounds.FreeBytes, record) }

// dataGrowth is the growth of an allocation's counted size by a change of its user data.
func (e *environment) dataGrowth(a *Allocation, change []quota.Label) int64 {
	data, size := a.lease().data, a.size()
	after := size - sizeOfPairs(data) + sizeOfPairs(overlayData(data, change))
	return max(0, after-e.bounds.FreeBytes) - max(0, size-e.bounds.FreeBytes)
}

// size is the size of an allocation. What others gave up for it does not count, because each of them is
// named by two allocations at most. Neither do its items, which it gets while it is stored.
func (a *Allocation) size() int64 { return a.Size() }

// Size estimates the memory of the record in bytes. The caller must have the ledger.
func (a *Allocation) Size() int64 {
	n := recordBytes + int64(len(a.id)) + sizeOfPairs(a.labels())
	for i := range a.claims {
		n += a.claims[i].size()
	}
	if a.ended != nil {
		n += reasonSize(a.ended.reason)
	}
	if a.more == nil {
		return n
	}
	if b := a.more.lease; b != nil {
		n += sizeOfPairs(b.askedData) + sizeOfPairs(b.data) + reasonSize(b.reason)
	}
	if r := a.more.resized; r != nil {
		n += int64(len(r.splitFrom))
		for i := range r.first {
			n += claimSize(&r.first[i])
		}
		n += listsSize(r.anyOf)
	}
	return n + sizeOfPrincipal(a.more.principal)
}

func (c *placedClaim) size() int64 {
	n := int64(claimBytes + len(c.asked.treeName) + len(c.asked.path))
	if c.more == nil {
		return n + int64(len(c.amounts))*componentBytes
	}
	picks := c.picks()
	for _, p := range c.amounts {
		if len(picks) == 0 || p.resource.Unit != quota.Items {
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

// size is that of the record and of the original request, with all alternatives.
func (w *waiter) size() int64 { return 2 * w.record.size() }

func (it *item) size() int64 {
	return itemBytes + int64(len(it.name)+len(it.state)) + sizeOfPairs(it.data)
}

// itemGrowth is the growth of counted sizes by a change of items.
func (e *environment) itemGrowth(list []*item, updates []quota.ItemUpdate) int64 {
	growth := int64(0)
	for i, it := range list {
		is := *it
		is.data = overlayData(it.data, updates[i].Data)
		if updates[i].State != "" {
			is.state = updates[i].State
		}
		growth += e.countedSize(&is) - e.countedSize(it)
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

func eventSize(e *quota.Event) int64 {
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

func revisionSize(r *quota.Revision) int64 {
	n := revisionBytes + int64(len(r.Actor)+len(r.Reason)+len(r.RequestID)+len(r.Fingerprint))
	for i := range r.Changes {
		c := &r.Changes[i]
		n += int64(changeBytes + len(c.Tree) + len(c.Node) + len(c.Field) + len(c.Before) + len(c.After))
	}
	for i := range r.Undo {
		n += treeUndoSize(&r.Undo[i])
	}
	for i := range r.UndoPolicies {
		n += policySpecSize(&r.UndoPolicies[i].PolicySpec)
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

// nodeSpecSize is the size of a node's configuration.
func nodeSpecSize(s *quota.NodeSpec) int64 {
	n := int64(specBytes+len(s.Path)+len(s.Policy)) + sizeOfPairs(s.Labels) + sizeOfTexts(s.Admins) +
		bindingsSize(s.Bindings)
	for _, limits := range [...][]quota.ResourceLimit{s.Limits, s.Defaults, s.Borrow, s.Lend} {
		for _, limit := range limits {
			n += int64(limitBytes + len(limit.Resource))
		}
	}
	n += int64(len(s.WarnAt.Percents)) * pairBytes
	for i := range s.Principals {
		p := &s.Principals[i]
		n += int64(specBytes+len(p.Description)) + sizeOfTexts(p.Users) + sizeOfTexts(p.Groups)
		for _, component := range p.Limits {
			n += int64(componentBytes + textBytes + len(component.Resource))
		}
	}
	return n
}

// bytes is the size of a node in its tree.
func (n *node) bytes() int64 {
	cell := int64(cellBytes)
	if n.warnAt != nil {
		cell += int64(len(n.warnAt.Percents)) * componentBytes // as if all were crossed
	}
	return nodeBytes + nodeSpecSize(n.spec) + int64(len(n.tree.resources))*cell
}

// bytes is the size of a tree, 0 for nil. It visits all nodes.
func (t *tree) bytes() int64 {
	if t == nil {
		return 0
	}
	n := int64(specBytes + len(t.name) + len(t.settings.Forest))
	for _, r := range t.resources {
		n += resourceSize(&r.Resource)
	}
	t.root.walk(func(at *node) bool {
		n += at.bytes()
		return true
	})
	return n
}

// bindingsSize is the size of bindings, see quota.Sizes.
func bindingsSize(list []access.Binding) int64 {
	n := int64(0)
	for _, b := range list {
		n += bindingBytes + int64(len(b.Role)+len(b.IDs)) + sizeOfTexts(b.HoldAs.Names)
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

// bytes is the size of the definitions, see quota.Sizes.
func (s *policySet) bytes() int64 {
	n := int64(0)
	for i := range s.specs {
		n += policySpecSize(&s.specs[i])
	}
	return n
}

// policySpecSize is the size of a definition.
func policySpecSize(s *quota.PolicySpec) int64 {
	n := int64(specBytes + len(s.Name) + len(s.Base))
	for _, sw := range policy.Switches() {
		n += int64(len(*sw.Field(s)))
	}
	return n
}
