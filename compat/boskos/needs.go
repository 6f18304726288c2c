package boskos

import (
	"maps"
	"math"
	"slices"
)

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
