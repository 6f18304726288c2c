package ledger

import "fmt"

// UndoImage is what the end of a reservation needs to restore the state from before it.
type UndoImage struct {
	Trees []TreeVersionImage
	Nodes []DynamicNodeImage
	Items []ItemBeforeImage
	// Arrival is the last one given in the queue when the reservation was made.
	Arrival uint64
	// LiveBytes is what the ledger had before the reservation of what cannot be forgotten.
	LiveBytes int64
}

// TreeVersionImage says which version of a tree a reservation found, and which one it left.
type TreeVersionImage struct {
	Tree          string
	Before, After uint64
}

// DynamicNodeImage is a node made on demand where a victim held something or belonged.
type DynamicNodeImage struct {
	Tree, Path string
	ID         uint64
}

// ItemBeforeImage is an item as it was before a reservation.
type ItemBeforeImage struct {
	ItemImage
	// Owner is the fence of the allocation that held it; 0 if none did.
	Owner uint64
	// IsNew is true if there was no such item; then nothing else is said about it but Now.
	IsNew bool
	// Now is the turn that the item got; 0 if it went.
	Now uint64
}

func (u *undoRecord) image() *UndoImage {
	if u == nil {
		return nil
	}
	image := &UndoImage{Arrival: u.arrival, LiveBytes: u.liveBytes}
	for _, v := range u.trees {
		image.Trees = append(image.Trees, TreeVersionImage{Tree: v.tree, Before: v.before, After: v.after})
	}
	for _, n := range u.nodes {
		image.Nodes = append(image.Nodes, DynamicNodeImage{Tree: n.tree, Path: n.path, ID: n.id})
	}
	for _, b := range u.items {
		before := ItemBeforeImage{ItemImage: ItemImage{ItemName: b.name}, IsNew: b.was == nil, Now: b.turn}
		if it := b.was; it != nil {
			before.ItemImage = ItemImage{
				ItemName: b.name, State: it.state, Turn: it.turn, Updated: it.updated, Since: it.since, Expires: it.expires,
				Data: it.data, Leaving: it.leaving,
			}
			before.Owner = it.owner
		}
		image.Items = append(image.Items, before)
	}
	return image
}

func (image *UndoImage) record() *undoRecord {
	if image == nil {
		return nil
	}
	u := &undoRecord{arrival: image.Arrival, liveBytes: image.LiveBytes}
	for _, v := range image.Trees {
		u.trees = append(u.trees, treeVersion{v.Tree, v.Before, v.After})
	}
	for _, n := range image.Nodes {
		u.nodes = append(u.nodes, dynamicNode{n.Tree, n.Path, n.ID})
	}
	for _, b := range image.Items {
		before := itemBefore{name: b.ItemName, turn: b.Now}
		if !b.IsNew {
			before.was = &item{
				name: b.Name, state: b.State, turn: b.Turn, owner: b.Owner, updated: b.Updated, since: b.Since, expires: b.Expires,
				data: b.Data, leaving: b.Leaving,
			}
		}
		u.items = append(u.items, before)
	}
	return u
}

// check refuses a record with what was never given: it would put the ledger into a state that it could not have had.
func (image *UndoImage) check(l *Ledger, id string) error {
	if image == nil {
		return nil
	}
	for _, v := range image.Trees {
		if v.Before >= v.After || v.After > l.forest.version {
			return fmt.Errorf("reservation %q changed tree %s from version %d to %d, which was never given", id, v.Tree, v.Before, v.After)
		}
	}
	for _, n := range image.Nodes {
		if n.ID == 0 || n.ID > l.forest.nodeID {
			return fmt.Errorf("reservation %q remembers node %d of tree %s, which was never there", id, n.ID, n.Tree)
		}
	}
	for _, b := range image.Items {
		if b.Now > l.inventory.turn || !b.IsNew && (b.Turn == 0 || b.Turn > l.inventory.turn || b.Owner > l.allocations.fence) {
			return fmt.Errorf("reservation %q remembers item %s with a turn or an owner that was never given", id, b.Name)
		}
	}
	return nil
}
