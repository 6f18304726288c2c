package activity

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/quota"
)

// sample is the state of the ledger at about one time. Its parts are read one after the other, so that the ledger is
// never locked for long; each part is consistent in itself.
type sample struct {
	counts  quota.Counts
	trees   []treeSample
	waiting []quota.WaitingClaim
	items   []quota.ItemCount
	shown   shownUsage
}

type treeSample struct {
	name             string
	nodes, resources []quota.NamedCount
}

type sampleTotals struct {
	counts quota.Counts
	trees  []treeTotals
	items  []quota.ItemCount
	shown  shownUsage
}

type treeTotals struct {
	name          string
	held, waiting int
}

func (r *Recorder) refreshSample(ctx context.Context, goodFor time.Duration) error {
	r.sampleLock.Lock()
	defer r.sampleLock.Unlock()
	if r.sampledWithin(goodFor) {
		return nil
	}
	r.metrics.denials.beginSample()
	s, err := r.takeSample(ctx)
	if err != nil {
		return err
	}
	at := r.now()
	r.mu.Lock()
	r.applySample(s, stepAt(at))
	r.mu.Unlock()
	if err := r.sampleAmounts(ctx, stepAt(at)); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sampledAt = at
	return nil
}

func (r *Recorder) sampledWithin(span time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	age := r.now().Sub(r.sampledAt)
	return age >= 0 && age < span // negative after the clock was set back
}

// mostFrequent keeps the most frequent states, sorted by name, and counts the rest together.
func mostFrequent(states []quota.NamedCount, most int) []quota.NamedCount {
	if len(states) <= most {
		return states
	}
	list := slices.Clone(states)
	slices.SortFunc(list, func(a, b quota.NamedCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Name, b.Name))
	})
	others := quota.NamedCount{Name: OtherStates}
	for _, s := range list[most-1:] {
		others.Count += s.Count
	}
	list = append(list[:most-1], others)
	slices.SortFunc(list, func(a, b quota.NamedCount) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// applySample expects that mu is held.
func (r *Recorder) applySample(s sample, now stepNumber) {
	r.samples++
	sums := map[string]*treeTotals{}
	r.totals = sampleTotals{counts: s.counts, trees: make([]treeTotals, len(s.trees)), items: s.items, shown: s.shown}
	for i, t := range s.trees {
		sums[t.name] = &r.totals.trees[i]
		sums[t.name].name = t.name
		for _, n := range t.nodes {
			sums[t.name].held += n.Count
			r.addToSeries(Key{Tree: t.name, Node: n.Name}, now, levels{held: uint32(n.Count)})
		}
		for _, c := range t.resources {
			r.addToSeries(Key{Tree: t.name, Resource: c.Name}, now, levels{held: uint32(c.Count)})
		}
	}
	for _, w := range s.waiting {
		if sum := sums[w.Tree]; sum != nil {
			sum.waiting++
		}
		r.addToSeries(Key{Tree: w.Tree, Node: w.Node}, now, levels{waiting: 1, asked: askedAmounts(w)})
		for resource := range pickedResources(w.Picks) {
			r.addToSeries(Key{Tree: w.Tree, Resource: resource}, now, levels{waiting: 1})
		}
	}
	r.recordSample(now)
	r.recordItems(s.items, now)
	r.metrics.forgetTrees(func(tree string) bool { return sums[tree] != nil })
}

// addToSeries adds to the series of all ancestors too.
func (r *Recorder) addToSeries(key Key, now stepNumber, part levels) {
	shelf := r.seriesFor(key)
	for path := range pathAndAncestors(key.Node) {
		key.Node = path
		s := shelf.findOrAdd(key, now)
		if s == nil {
			continue // the cache is full of series that are more active
		}
		if s.sample != r.samples {
			s.sample, s.levels = r.samples, levels{}
		}
		s.levels.add(part)
	}
}

// recordSample sets the levels of all series to the counts of the sample, which are zero where it has none.
func (r *Recorder) recordSample(now stepNumber) {
	for _, shelf := range []*seriesCache{r.nodes, r.resources} {
		for s := range shelf.allSeries() {
			if s.sample != r.samples {
				s.levels = levels{}
			}
			s.setLevels(now)
		}
	}
}

// recordItems sets no states for a resource that is not in the sample.
func (r *Recorder) recordItems(items []quota.ItemCount, now stepNumber) {
	found := map[*series]bool{}
	for _, c := range items {
		if s := r.resources.findOrAdd(Key{Tree: c.Tree, Resource: c.Resource}, now); s != nil {
			found[s] = true
			s.setStates(now, c.States)
		}
	}
	for s := range r.resources.allSeries() {
		if !found[s] {
			s.setStates(now, nil)
		}
	}
}
