package ledger

import (
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// spot is a place in the sketch of a tree: what stands where while nodes are moved. A path exists in a sketch if a node
// stands there or below. A move costs the depth of its paths.
type spot struct {
	name  string
	above *spot
	below map[string]*spot
	// spec is nil if nothing stands here, but below; its path is that of the beginning. from is the node of the ledger.
	spec *quota.NodeSpec
	from *node
}

// sketch draws the configured nodes of a tree; nil is an empty one.
func (t *tree) sketch() *spot {
	root := &spot{}
	if t != nil {
		t.root.walk(func(n *node) bool {
			if !n.made {
				s := root.grow(n.path)
				s.spec, s.from = n.spec, n
			}
			return true
		})
	}
	return root
}

// find is the spot at a path below, or nil.
func (s *spot) find(path string) *spot {
	for path != "" && s != nil {
		var name string
		name, path, _ = strings.Cut(path, "/")
		s = s.below[name]
	}
	return s
}

// grow is the spot at a path below; what lacks is added.
func (s *spot) grow(path string) *spot {
	for path != "" {
		var name string
		name, path, _ = strings.Cut(path, "/")
		next := s.below[name]
		if next == nil {
			next = &spot{name: name}
			next.hang(s)
		}
		s = next
	}
	return s
}

func (s *spot) hang(above *spot) {
	if above.below == nil {
		above.below = map[string]*spot{}
	}
	above.below[s.name], s.above = s, above
}

// cut takes the spot out with everything below, and the spots above that were there for its sake only.
func (s *spot) cut() {
	above := s.above
	delete(above.below, s.name)
	s.above = nil
	above.wither()
}

// wither removes a spot at which nothing stands, nor below.
func (s *spot) wither() {
	if s.spec == nil && len(s.below) == 0 && s.above != nil {
		s.cut()
	}
}

// move gives what stands at one path another; if nothing does, or the other path exists, it is passed over.
func (s *spot) move(m quota.Move) {
	it := s.find(m.From)
	if it == nil || s.find(m.To) != nil {
		return
	}
	it.cut()
	it.name = quota.LastName(m.To)
	it.hang(s.grow(quota.ParentPath(m.To)))
}

// remove takes away the node at a path, but not those below.
func (s *spot) remove(path string) {
	if it := s.find(path); it != nil {
		it.spec, it.from = nil, nil
		it.wither()
	}
}

// nodes are the specifications at the paths where they stand now, parents before children, siblings by name.
func (s *spot) nodes() []quota.NodeSpec {
	var list []quota.NodeSpec
	s.collect("", &list)
	return list
}

func (s *spot) collect(path string, list *[]quota.NodeSpec) {
	if s.spec != nil {
		spec := *s.spec
		spec.Path = path
		*list = append(*list, spec)
	}
	for _, name := range slices.Sorted(maps.Keys(s.below)) {
		s.below[name].collect(quota.ChildPath(path, name), list)
	}
}
