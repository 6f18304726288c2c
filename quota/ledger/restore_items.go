package ledger

import (
	"fmt"
	"iter"
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// Items yields the items in the order of their turns.
func (i *Snapshot) Items() iter.Seq[ItemImage] {
	return func(yield func(ItemImage) bool) {
		for _, it := range i.items.All() {
			owner, _ := i.held.Get(it.owner)
			if !yield(it.image(owner)) {
				return
			}
		}
	}
}

func (it *item) image(owner *Allocation) ItemImage {
	return ItemImage{
		ItemName: quota.ItemName{Tree: it.stock.tree, Resource: it.stock.resource.Name, Name: it.name}, State: it.state,
		Turn: it.stateSeq, Updated: it.touched(owner),
		Since: it.since, Expires: it.expires, Data: it.data, Leaving: it.leaving,
	}
}

// itemNumbers are the last numbers assigned to items on demand, by resource; nil if all are 0.
func (t *tree) itemNumbers() []uint64 {
	var numbers []uint64
	for i, r := range t.resources {
		if r.stock != nil && r.stock.number != 0 {
			numbers = atIndex(numbers, len(t.resources), i, r.stock.number)
		}
	}
	return numbers
}

// addStock prepares the resources of a tree for their items.
func (ld *Restorer) addStock(t *tree, numbers []uint64) error {
	if len(numbers) > 0 && len(numbers) != len(t.resources) {
		return fmt.Errorf("tree %s has %d resources, but numbers of items for %d", t.name,
			len(t.resources), len(numbers))
	}
	for i, r := range t.resources {
		if r.Unit == quota.Items {
			r.stock = newStock(t.name, r)
			r.stock.number = nodeAt(numbers, i)
		}
	}
	return nil
}

// AddItem adds one item. It must be called after all trees and before held allocations.
func (ld *Restorer) AddItem(image ItemImage) error {
	s, err := ld.stockOf(image.Tree, image.Resource)
	if err != nil {
		return err
	}
	l := ld.ledger
	switch _, taken := l.inventory.items.Get(image.Turn); {
	case !quota.IsItemName(image.Name) || s.byName[image.Name] != nil:
		return fmt.Errorf("item %q of resource %s of tree %s is there twice, or has no good name", image.Name,
			image.Resource, image.Tree)
	case taken || image.Turn == 0 || image.Turn > l.inventory.lastStateSeq:
		return fmt.Errorf("turn %d of item %s is not unique, or was never given", image.Turn, image.Name)
	case image.State == "" || len(image.State) > quota.MaxItemState:
		return fmt.Errorf("item %s is in state %q, which cannot be", image.Name, image.State)
	}
	if refused := l.checkData(image.Data, "user_data"); refused != nil {
		return refused
	}
	l.inventory.changeItem(nil, &item{
		stock: s, name: image.Name, state: image.State, stateSeq: image.Turn, updated: image.Updated,
		since:   image.Since,
		expires: image.Expires, data: image.Data, leaving: image.Leaving,
	})
	return nil
}

func (ld *Restorer) stockOf(tree, resource string) (*stock, error) {
	if t := ld.ledger.forest.trees[tree]; t != nil {
		if r := t.resource(resource); r != nil && r.stock != nil {
			return r.stock, nil
		}
	}
	return nil, fmt.Errorf("tree %s has no resource %s of items", tree, resource)
}

// restoreItems restores the picks and items of a claim, which count like amounts. The items of an ended allocation are
// names only.
func (c *placedClaim) restoreItems(image AllocationImage, i int) error {
	picks := image.Request.Claims[i].Picks
	if len(picks) == 0 {
		return nil
	}
	c.setItems(picks, nil)
	for _, h := range image.Items {
		if h.Claim != i {
			continue
		}
		held := heldItem{resource: h.Resource, name: h.Name}
		if n := len(c.heldItems()); n > 0 && compareHeld(c.heldItems()[n-1], held) >= 0 ||
			c.pickOf(h.Resource).Resource == "" {
			return fmt.Errorf("item %s is out of order, held twice, or was not asked for", h.Name)
		}
		c.more.items.held = append(c.more.items.held, held)
	}
	for _, p := range picks {
		r, err := c.at.restoreResource(quota.Component{Resource: p.Resource})
		if err != nil {
			return err
		}
		if c.at.tree == nil {
			r.Unit = quota.Items
		}
		n := c.countOf(p.Resource)
		if image.State == quota.Waiting {
			n = quota.Amount(p.Count)
		}
		if n > 0 {
			c.amounts = append(c.amounts, placedAmount{r, n})
		}
	}
	slices.SortStableFunc(c.amounts, func(a, b placedAmount) int { return a.resource.index - b.resource.index })
	return nil
}

// claimItems makes a restored allocation the owner of its items.
func (ld *Restorer) claimItems(a *Allocation) error {
	for i := range a.claims {
		c := &a.claims[i]
		for j, h := range c.heldItems() {
			s, err := ld.stockOf(c.at.treeName, h.resource)
			if err != nil {
				return err
			}
			it := s.byName[h.name]
			if it == nil || it.owner != 0 {
				return fmt.Errorf(
					"I5: allocation %q holds item %s, which does not exist, or has another owner", a.id, h.name)
			}
			is := *it
			is.owner = a.fence
			ld.ledger.inventory.changeItem(it, &is)
			c.more.items.held[j].is = &is
		}
	}
	return nil
}

// AddLimitRequest adds one request for limits, in the order of numbers.
func (ld *Restorer) AddLimitRequest(r *quota.LimitRequest) error {
	s := &ld.ledger.requests
	if n := len(s.all); n > 0 && s.all[n-1].Number >= r.Number || r.Number == 0 || r.Number > s.last {
		return fmt.Errorf("request for limits %d is not in order, or beyond the last, %d", r.Number, s.last)
	}
	if len(s.all) >= s.bounds.Requests+s.bounds.ClosedRequests {
		return fmt.Errorf("more than %d requests for limits", s.bounds.Requests+s.bounds.ClosedRequests)
	}
	s.all = append(s.all, r)
	s.closedSeq = max(s.closedSeq, r.ClosedSeq)
	if r.State == quota.RequestOpen {
		s.deadlines.set(dueKey{dueRequest, r.Number}, r.Ends)
	}
	return nil
}

// AddWebhook adds one webhook, in the order of names.
func (ld *Restorer) AddWebhook(w *quota.Webhook) error {
	s := &ld.ledger.webhooks
	if n := len(s.all); n > 0 && s.all[n-1].Name >= w.Name || n >= quota.MaxWebhooks {
		return fmt.Errorf("webhook %q is not in order, or one of more than %d", w.Name, quota.MaxWebhooks)
	}
	s.all = append(s.all, w)
	return nil
}

// SetAccess gives the ledger a book. It must be called before AddTree.
func (ld *Restorer) SetAccess(s access.State) error {
	book, err := access.Load(s)
	if err != nil {
		return err
	}
	ld.ledger.book = book
	return nil
}

// addHold restores the hold of a node.
func (ld *Restorer) addHold(n *node, hold *HoldImage) error {
	if hold == nil {
		return nil
	}
	l := ld.ledger
	switch {
	case n.dynamic || len(l.forest.onHold) >= quota.MaxHolds:
		return fmt.Errorf("%s is on hold, but was made on demand, or too many nodes are on hold", n.place())
	case hold.Since.At > l.now.At || hold.DrainAt != 0 && !hold.Drain || hold.DrainAfter > l.allocations.fence:
		return fmt.Errorf("%s is on hold since a future time, or drained in a way that never was", n.place())
	}
	l.setHold(n, hold)
	return nil
}
