package image

import (
	"fmt"
	"iter"
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// Items yields the items in the order of their turns.
func (i *Snapshot) Items() iter.Seq[state.ItemImage] {
	return func(yield func(state.ItemImage) bool) {
		for _, it := range i.items.All() {
			owner, _ := i.held.Get(it.Owner)
			if !yield(imageOfItem(it, owner)) {
				return
			}
		}
	}
}

func imageOfItem(it *state.Item, owner *state.Allocation) state.ItemImage {
	return state.ItemImage{
		ItemName: quota.ItemName{Tree: it.Stock.Tree, Resource: it.Stock.Resource.Name, Name: it.Name}, State: it.State,
		StateSeq: it.StateSeq, Updated: it.Touched(owner),
		Since: it.Since, Expires: it.Expires, Data: it.Data, Leaving: it.Leaving,
	}
}

// itemNumbers are the last numbers assigned to items on demand, by resource; nil if all are 0.
func itemNumbers(t *state.Tree) []uint64 {
	var numbers []uint64
	for i, r := range t.Resources {
		if r.Stock != nil && r.Stock.Number != 0 {
			numbers = atIndex(numbers, len(t.Resources), i, r.Stock.Number)
		}
	}
	return numbers
}

// addStock prepares the resources of a tree for their items.
func (ld *Restorer) addStock(t *state.Tree, numbers []uint64) error {
	if len(numbers) > 0 && len(numbers) != len(t.Resources) {
		return fmt.Errorf("tree %s has %d resources, but numbers of items for %d", t.Name,
			len(t.Resources), len(numbers))
	}
	for i, r := range t.Resources {
		if r.Unit == quota.Items {
			r.Stock = state.NewStock(t.Name, r)
			r.Stock.Number = nodeAt(numbers, i)
		}
	}
	return nil
}

// AddItem adds one item. It must be called after all trees and before held allocations.
func (ld *Restorer) AddItem(image state.ItemImage) error {
	stock, err := ld.stockOf(image.Tree, image.Resource)
	if err != nil {
		return err
	}
	s := ld.state
	switch _, taken := s.Inventory.Items.Get(image.StateSeq); {
	case !quota.IsItemName(image.Name) || stock.ByName[image.Name] != nil:
		return fmt.Errorf("item %q of resource %s of tree %s is there twice, or has no good name", image.Name,
			image.Resource, image.Tree)
	case taken || image.StateSeq == 0 || image.StateSeq > s.Inventory.LastStateSeq:
		return fmt.Errorf("number %d of item %s is not unique, or was never given", image.StateSeq, image.Name)
	case image.State == "" || len(image.State) > quota.MaxItemState:
		return fmt.Errorf("item %s is in state %q, which cannot be", image.Name, image.State)
	}
	if refused := admit.CheckData(&s.Environment, image.Data, "user_data"); refused != nil {
		return refused
	}
	admit.ChangeItem(&s.Inventory, nil, &state.Item{
		Stock: stock, Name: image.Name, State: image.State, StateSeq: image.StateSeq, Updated: image.Updated,
		Since:   image.Since,
		Expires: image.Expires, Data: image.Data, Leaving: image.Leaving,
	})
	return nil
}

func (ld *Restorer) stockOf(tree, resource string) (*state.Stock, error) {
	if t := ld.state.Forest.Trees[tree]; t != nil {
		if r := t.Resource(resource); r != nil && r.Stock != nil {
			return r.Stock, nil
		}
	}
	return nil, fmt.Errorf("tree %s has no resource %s of items", tree, resource)
}

// restoreItems restores the picks and items of a claim, which count like amounts. The items of an ended allocation are
// names only.
func restoreItems(c *state.PlacedClaim, image AllocationImage, i int) error {
	picks := image.Request.Claims[i].Picks
	if len(picks) == 0 {
		return nil
	}
	c.SetItems(picks, nil)
	for _, h := range image.Items {
		if h.Claim != i {
			continue
		}
		held := state.HeldItem{Resource: h.Resource, Name: h.Name}
		if n := len(c.HeldItems()); n > 0 && state.CompareHeld(c.HeldItems()[n-1], held) >= 0 ||
			c.PickOf(h.Resource).Resource == "" {
			return fmt.Errorf("item %s is out of order, held twice, or was not asked for", h.Name)
		}
		c.More.Items.Held = append(c.More.Items.Held, held)
	}
	for _, p := range picks {
		r, err := restoreResource(c.At, quota.Component{Resource: p.Resource})
		if err != nil {
			return err
		}
		if c.At.Tree == nil {
			r.Unit = quota.Items
		}
		n := c.CountOf(p.Resource)
		if image.State == quota.Waiting {
			n = quota.Amount(p.Count)
		}
		if n > 0 {
			c.Amounts = append(c.Amounts, state.PlacedAmount{Resource: r, Amount: n})
		}
	}
	slices.SortStableFunc(c.Amounts, func(a, b state.PlacedAmount) int { return a.Resource.Index - b.Resource.Index })
	return nil
}

// claimItems makes a restored allocation the owner of its items.
func (ld *Restorer) claimItems(a *state.Allocation) error {
	for i := range a.Claims {
		c := &a.Claims[i]
		for j, h := range c.HeldItems() {
			s, err := ld.stockOf(c.At.TreeName, h.Resource)
			if err != nil {
				return err
			}
			it := s.ByName[h.Name]
			if it == nil || it.Owner != 0 {
				return fmt.Errorf(
					"I5: allocation %q holds item %s, which does not exist, or has another owner", a.ID(), h.Name)
			}
			updated := *it
			updated.Owner = a.Fence()
			admit.ChangeItem(&ld.state.Inventory, it, &updated)
			c.More.Items.Held[j].Is = &updated
		}
	}
	return nil
}

// AddLimitRequest adds one request for limits, in the order of numbers.
func (ld *Restorer) AddLimitRequest(r *quota.LimitRequest) error {
	s := &ld.state.Requests
	if n := len(s.All); n > 0 && s.All[n-1].Number >= r.Number || r.Number == 0 || r.Number > s.Last {
		return fmt.Errorf("request for limits %d is not in order, or beyond the last, %d", r.Number, s.Last)
	}
	if len(s.All) >= s.Bounds.Requests+s.Bounds.ClosedRequests {
		return fmt.Errorf("more than %d requests for limits", s.Bounds.Requests+s.Bounds.ClosedRequests)
	}
	s.All = append(s.All, r)
	s.ClosedSeq = max(s.ClosedSeq, r.ClosedSeq)
	if r.State == quota.RequestOpen {
		s.Deadlines.Set(state.DueKey{Kind: state.DueRequest, Number: r.Number}, r.Ends)
	}
	return nil
}

// AddWebhook adds one webhook, in the order of names.
func (ld *Restorer) AddWebhook(w *quota.Webhook) error {
	s := &ld.state.Webhooks
	if n := len(s.All); n > 0 && s.All[n-1].Name >= w.Name || n >= quota.MaxWebhooks {
		return fmt.Errorf("webhook %q is not in order, or one of more than %d", w.Name, quota.MaxWebhooks)
	}
	s.All = append(s.All, w)
	return nil
}

// SetAccess gives the ledger a book. It must be called before AddTree.
func (ld *Restorer) SetAccess(s access.State) error {
	book, err := access.Load(s)
	if err != nil {
		return err
	}
	ld.state.Book = book
	return nil
}

func (ld *Restorer) addHold(n *state.Node, hold *state.HoldImage) error {
	if hold == nil {
		return nil
	}
	s := ld.state
	switch {
	case n.Dynamic || len(s.Forest.OnHold) >= quota.MaxHolds:
		return fmt.Errorf("%s is on hold, but was made on demand, or too many nodes are on hold", n.Place())
	case hold.Since.At > s.Now.At || hold.DrainAt != 0 && !hold.Drain || hold.DrainAfter > s.Allocations.Fence:
		return fmt.Errorf("%s is on hold since a future time, or drained in a way that never was", n.Place())
	}
	admit.SetHold(s, n, hold)
	return nil
}
