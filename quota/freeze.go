package quota

import (
	"iter"
	"maps"
	"slices"

	"github.com/quorate/quorate/quota/ordmap"
)

// Image is a ledger as it stood at one moment. It may be read by another goroutine while the ledger goes on. It holds
// facts only (configuration, history, allocations): usage follows from them.
type Image struct {
	Header    Header
	trees     []TreeImage
	revisions []*Revision
	held      ordmap.Map[*Allocation]
	ended     ordmap.Map[*Allocation]
}

// Header is the part of an image that is not a list.
type Header struct {
	Now      Stamp
	Revision uint64
	// Fence and NodeID are the last ones given.
	Fence, NodeID uint64
}

// TreeImage is a tree with the identities of its nodes, parents before children, siblings by name.
type TreeImage struct {
	Name      string
	Resources []Resource
	Nodes     []NodeImage
}

// NodeImage is a node with its identity.
type NodeImage struct {
	ID   uint64
	Spec *NodeSpec
}

// AllocationImage is one allocation.
type AllocationImage struct {
	Request Allocate
	Fence   uint64
	Granted Stamp
	// Placed has the identity of the node of each claim, while held.
	Placed []uint64
	// PlacedPaths has the path of the node of each claim, when ended; the node may be gone.
	PlacedPaths []string
	// Ended is nil while held.
	Ended *Stamp
}

// Freeze takes an image. It costs the number of nodes, not of allocations.
func (l *Ledger) Freeze() *Image {
	image := &Image{
		Header:    Header{Now: l.now, Revision: l.revision, Fence: l.fence, NodeID: l.nodeID},
		revisions: slices.Clone(l.revisions),
		held:      l.held.Clone(),
		ended:     l.ended.Clone(),
	}
	for _, name := range slices.Sorted(maps.Keys(l.trees)) {
		image.trees = append(image.trees, l.trees[name].freeze())
	}
	return image
}

func (t *tree) freeze() TreeImage {
	image := TreeImage{Name: t.name, Resources: t.registered(), Nodes: make([]NodeImage, 0, len(t.byPath))}
	t.root.walk(func(n *node) bool {
		image.Nodes = append(image.Nodes, NodeImage{ID: n.id, Spec: n.spec})
		return true
	})
	return image
}

// Trees are sorted by name.
func (i *Image) Trees() []TreeImage { return i.trees }

// Revisions are the remembered changes of configuration, oldest first.
func (i *Image) Revisions() []*Revision { return i.revisions }

// Held yields held allocations in the order of their fences.
func (i *Image) Held() iter.Seq[AllocationImage] { return images(&i.held) }

// Ended yields ended allocations in the order of their ends.
func (i *Image) Ended() iter.Seq[AllocationImage] { return images(&i.ended) }

func images(m *ordmap.Map[*Allocation]) iter.Seq[AllocationImage] {
	return func(yield func(AllocationImage) bool) {
		for _, a := range m.All() {
			if !yield(a.image()) {
				return
			}
		}
	}
}

func (a *Allocation) image() AllocationImage {
	image := AllocationImage{Fence: a.fence, Granted: a.granted, Ended: a.ended, Request: Allocate{ID: a.id, Labels: a.labels}}
	image.Request.Claims = make([]Claim, len(a.claims))
	for i, c := range a.claims {
		info := c.info()
		image.Request.Claims[i] = Claim{Tree: info.Tree, Node: info.Node, Amounts: info.Amounts}
		if a.ended == nil {
			image.Placed = append(image.Placed, c.at.id)
		} else {
			image.PlacedPaths = append(image.PlacedPaths, c.at.path)
		}
	}
	return image
}
