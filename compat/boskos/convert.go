package boskos

import (
	"maps"
	"math"
	"slices"

	"github.com/quorate/quorate/compat"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

const (
	// TreeName is the name of the tree that comes out.
	TreeName = "boskos"

	policy = "open"
)

// Convert reads a configuration file and answers the tree "boskos" under the policy "open": each type is a resource,
// and the root's limit is how many there are, or may be. What an item is called, and in which state it is, is not in a
// tree.
func Convert(data []byte) (*compat.Conversion, error) {
	config, err := Parse(data)
	if err != nil {
		return nil, err
	}
	c := &compat.Conversion{}
	var problems compat.Problems
	counts, states := countsOf(config), false
	tree := &quoratev1.Tree{Name: TreeName, Policy: policy, Limits: map[string]*quoratev1.Limit{}}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if !compat.IsResource(name) {
			problems.Add("type %.80q is no name for a resource here: 1 to 63 of letters, digits and _ . / -", name)
			continue
		}
		tree.Resources = append(tree.Resources, &quoratev1.Resource{Name: name, Unit: quoratev1.Unit_UNIT_COUNT})
		tree.Limits[name] = compat.AtMost(counts[name])
	}
	for _, e := range config.Entries {
		states = states || e.State != stateFree
		note(c, e)
	}
	c.Note("resources are counted: their names are not in the tree")
	if states {
		c.Note("states other than %s are not in the tree: every resource counts as usable", stateFree)
	}
	c.Trees = []*quoratev1.Tree{tree}
	problems = append(problems, compat.Bounds(c.Trees)...)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

func note(c *compat.Conversion, e Entry) {
	if e.Lifespan != 0 {
		c.Note("type %q: the lifespan of %s is not in the tree", e.Type, e.Lifespan)
	}
	if e.MinCount > 0 {
		c.Note("type %q: min-count %d is not in the tree: nothing is made in advance", e.Type, e.MinCount)
	}
	if len(e.Needs) > 0 {
		c.Note("type %q: needs are checked and not in the tree: claim what is needed in the same request", e.Type)
	}
	if e.HasConfig {
		c.Note("type %q: config is not read", e.Type)
	}
}

// countsOf adds the entries of each type up.
func countsOf(config *Config) map[string]int64 {
	counts := map[string]int64{}
	for _, e := range config.Entries {
		counts[e.Type] += e.Count()
	}
	return counts
}

// checkNeeds: every needed type exists and has enough for all that may be made of it, by all entries together.
func (p *parser) checkNeeds() {
	counts, needed := countsOf(&p.config), map[string]int64{}
	for i, e := range p.config.Entries {
		for _, name := range slices.Sorted(maps.Keys(e.Needs)) {
			if _, known := counts[name]; !known {
				p.Add("line %d: %q needs %q, which is no type of this file", p.lines[i], e.Type, name)
				continue
			}
			if each := e.Needs[name]; each > 0 && e.MaxCount > (math.MaxInt64-needed[name])/each {
				needed[name] = math.MaxInt64
			} else {
				needed[name] += each * e.MaxCount
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		if needed[name] > counts[name] {
			p.Add("%d of %q are needed if all are made that may be, and there are %d", needed[name], name, counts[name])
		}
	}
}
