package ledger_test

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// parts are an image taken apart, so that a test can break it.
type parts struct {
	header      ledger.Header
	trees       []ledger.TreeImage
	revisions   []*quota.Revision
	held, ended []ledger.AllocationImage
}

func (p parts) load() error {
	loader := ledger.NewRestorer(quota.DefaultBounds(), p.header)
	for _, t := range p.trees {
		if err := loader.AddTree(t); err != nil {
			return err
		}
	}
	for _, r := range p.revisions {
		if err := loader.AddRevision(r); err != nil {
			return err
		}
	}
	for _, a := range p.held {
		if err := loader.AddHeld(a); err != nil {
			return err
		}
	}
	for _, a := range p.ended {
		if err := loader.AddEnded(a); err != nil {
			return err
		}
	}
	_, err := loader.Finish()
	return err
}

func soundParts(t *testing.T) parts {
	t.Helper()
	p := newPlayer(false)
	for _, command := range [][]string{
		{"apply", "tree t policy=strict resources=cores cores=10", "node a cores=6", "node b cores=4"},
		{"set t cores=11"},
		{"tick 1s"},
		{"allocate h1 t:a cores=1"},
		{"allocate h2 t:b cores=2"},
		{"allocate e1 t:a cores=1"},
		{"allocate e2 t:a cores=1"},
		{"release e1"},
		{"tick 1s"},
		{"release e2"},
	} {
		if _, err := p.play(command); err != nil {
			t.Fatal(err)
		}
	}
	i := p.ledger.Snapshot()
	return parts{i.Header, i.Trees(), i.Revisions(), slices.Collect(i.Held()), slices.Collect(i.Ended())}
}

// TestBrokenImages: what the ledger could not have written is not loaded.
func TestBrokenImages(t *testing.T) {
	if err := soundParts(t).load(); err != nil {
		t.Fatalf("the sound image: %v", err)
	}
	for name, spoil := range map[string]func(p *parts){
		"a tree twice":            func(p *parts) { p.trees = append(p.trees, p.trees[0]) },
		"a tree without nodes":    func(p *parts) { p.trees[0].Nodes = nil },
		"a node without identity": func(p *parts) { p.trees[0].Nodes[1].ID = 0 },
		"an identity twice":       func(p *parts) { p.trees[0].Nodes[1].ID = p.trees[0].Nodes[2].ID },
		"an identity never given": func(p *parts) { p.trees[0].Nodes[1].ID = p.header.NodeID + 1 },
		"limits that strict forbids": func(p *parts) {
			p.trees[0].Nodes[0].Spec = &quota.NodeSpec{Policy: "strict"}
		},
		"a revision never made":     func(p *parts) { p.header.Revision = 1 },
		"revisions out of order":    func(p *parts) { slices.Reverse(p.revisions) },
		"a revision zero":           func(p *parts) { p.revisions[0] = &quota.Revision{} },
		"a fence zero":              func(p *parts) { p.held[0].Fence = 0 },
		"a fence twice":             func(p *parts) { p.held[0].Fence = p.held[1].Fence },
		"a fence never given":       func(p *parts) { p.header.Fence = 1 },
		"an id twice":               func(p *parts) { p.held[0].Request.ID = p.held[1].Request.ID },
		"no id":                     func(p *parts) { p.held[0].Request.ID = "" },
		"placed nowhere":            func(p *parts) { p.held[0].Placed = nil },
		"placed at an unknown node": func(p *parts) { p.held[0].Placed = []uint64{99} },
		"an unknown resource":       func(p *parts) { p.held[0].Request.Claims[0].Amounts[0].Resource = "mem" },
		"a negative amount":         func(p *parts) { p.held[0].Request.Claims[0].Amounts[0].Amount = -1 },
		"more than can be held": func(p *parts) {
			p.held[0].Request.Claims[0].Amounts[0].Amount = quota.MaxAmount
		},
		"granted in the future":          func(p *parts) { p.held[0].Granted.At = p.header.Now.At + 1 },
		"ended in the future":            func(p *parts) { p.header.Now.At = 1000 },
		"ended but held":                 func(p *parts) { p.ended[0].Ended = nil },
		"ends out of order":              func(p *parts) { slices.Reverse(p.ended) },
		"ended with a fence never given": func(p *parts) { p.ended[0].Fence = p.header.Fence + 1 },
		"ended before it was granted":    func(p *parts) { p.ended[0].Granted.At = p.ended[0].Ended.At + 1 },
		"ended nowhere":                  func(p *parts) { p.ended[0].PlacedPaths = nil },
		"ended with a negative amount":   func(p *parts) { p.ended[0].Request.Claims[0].Amounts[0].Amount = -1 },
		"ended without id":               func(p *parts) { p.ended[0].Request.ID = "" },
		"a group of nobody":              func(p *parts) { p.held[0].Groups = []string{"red"} },
		"held at a node of another one":  func(p *parts) { p.held[0].Request.Claims[0].Tree = "u" },
	} {
		p := soundParts(t)
		spoil(&p)
		if err := p.load(); err == nil {
			t.Errorf("an image with %s was loaded", name)
		}
	}
}

// borrowed are parts of a ledger in which x borrows at the root of a tree, and y sits in its leaf.
func borrowed(t *testing.T) parts {
	t.Helper()
	p := newPlayer(false)
	for _, command := range [][]string{
		{"apply", "tree t policy=borrowing resources=cores cores=9", "node a cores=1", "node b cores=4"},
		{"allocate x t:a cores=2"},
		{"allocate y t:b cores=2"},
	} {
		if _, err := p.play(command); err != nil {
			t.Fatal(err)
		}
	}
	i := p.ledger.Snapshot()
	return parts{header: i.Header, trees: i.Trees(), revisions: i.Revisions(), held: slices.Collect(i.Held())}
}

// TestBrokenArrivalNumbers: every claim at a borrowing node has an arrival number of its own, at or above the node that
// it belongs to.
func TestBrokenArrivalNumbers(t *testing.T) {
	if err := borrowed(t).load(); err != nil {
		t.Fatalf("the sound image: %v", err)
	}
	for name, spoil := range map[string]func(p *parts){
		"no arrival number":                 func(p *parts) { p.held[1].ArrivalSeqs = nil },
		"an arrival number twice":           func(p *parts) { p.held[1].ArrivalSeqs = p.held[0].ArrivalSeqs },
		"an arrival number never given":     func(p *parts) { p.header.ArrivalSeq = 1 },
		"an unknown home":                   func(p *parts) { p.held[0].Homes[0] = 99 },
		"a home beside the node":            func(p *parts) { p.held[1].Homes = p.held[0].Homes },
		"an arrival number in a plain tree": func(p *parts) { p.trees[0].Nodes[0].Spec = &quota.NodeSpec{Policy: "open"} },
		"a borrower in a gap": func(p *parts) {
			p.trees[0].Nodes[1].Spec = &quota.NodeSpec{Path: "a", Policy: "open"}
		},
	} {
		p := borrowed(t)
		spoil(&p)
		if err := p.load(); err == nil {
			t.Errorf("an image with %s was loaded", name)
		}
	}
}

// TestUnfinishedLoader: a loader answers one ledger.
func TestUnfinishedLoader(t *testing.T) {
	loader := ledger.NewRestorer(quota.DefaultBounds(), ledger.Header{})
	if _, err := loader.Finish(); err != nil {
		t.Errorf("an empty image is a ledger: %v", err)
	}
	if _, err := loader.Finish(); err == nil {
		t.Error("a loader that is finished answered another ledger")
	}
}
