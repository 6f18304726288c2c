package activity

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/quota"
)

// sample is how the ledger stands. Its parts are read one after the other, so that the ledger never waits for long;
// each is of one moment, all of them of nearly the same.
type sample struct {
	counts  quota.Counts
	trees   []treeSample
	waiting []quota.WaitingClaim
	items   []quota.ItemCount
}

// treeSample counts held claims by node and by itemized resource.
type treeSample struct {
	name             string
	nodes, resources []quota.NamedCount
}

// standing is what the metrics page shows of a sample.
type standing struct {
	counts quota.Counts
	trees  []treeStanding
	items  []quota.ItemCount
}

type treeStanding struct {
	name          string
	held, waiting int
}

// refresh takes a sample unless there is one that is young enough.
func (r *Recorder) refresh(ctx context.Context, goodFor time.Duration) error {
	r.sampling.Lock()
	defer r.sampling.Unlock()
	if r.sampledWithin(goodFor) {
		return nil
	}
	s, err := r.look(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.apply(s)
	return nil
}

func (r *Recorder) sampledWithin(span time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	age := r.now().Sub(r.sampledAt)
	return age >= 0 && age < span // after the clock was set back it is of no age
}

// mostFrequent keeps so many states, by name, and counts the rarest together.
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

// apply makes all series stand as a sample says. The lock is held.
func (r *Recorder) apply(s sample) {
	r.samples++
	r.sampledAt = r.now()
	now := stepAt(r.sampledAt)
	sums := map[string]*treeStanding{}
	r.standing = standing{counts: s.counts, trees: make([]treeStanding, len(s.trees)), items: s.items}
	for i, t := range s.trees {
		sums[t.name] = &r.standing.trees[i]
		sums[t.name].name = t.name
		for _, n := range t.nodes {
			sums[t.name].held += n.Count
			r.gather(Key{Tree: t.name, Node: n.Name}, now, n.Count, 0)
		}
		for _, c := range t.resources {
			r.gather(Key{Tree: t.name, Resource: c.Name}, now, c.Count, 0)
		}
	}
	for _, w := range s.waiting {
		if sum := sums[w.Tree]; sum != nil {
			sum.waiting++
		}
		r.gather(Key{Tree: w.Tree, Node: w.Node}, now, 0, 1)
		for resource := range picked(w.Picks) {
			r.gather(Key{Tree: w.Tree, Resource: resource}, now, 0, 1)
		}
	}
	r.settle(now)
	r.settleItems(s.items, now)
	r.metrics.keep(func(tree string) bool { return sums[tree] != nil })
}

// gather adds up what a sample finds at a node for it and all its ancestors, or for a resource.
func (r *Recorder) gather(key Key, now number, held, waiting int) {
	shelf := r.shelf(key)
	for path := range upwards(key.Node) {
		key.Node = path
		s := shelf.meet(key, now)
		if s == nil {
			continue // there is no room for those where nothing has happened lately
		}
		if s.sample != r.samples {
			s.sample, s.held, s.waiting = r.samples, 0, 0
		}
		s.held += uint32(held)
		s.waiting += uint32(waiting)
	}
}

// settle writes down what the sample has found, and zero where it has found nothing.
func (r *Recorder) settle(now number) {
	for _, shelf := range []*shelf{r.nodes, r.resources} {
		for s := range shelf.all() {
			if s.sample != r.samples {
				s.held, s.waiting = 0, 0
			}
			s.stand(now, s.held, s.waiting)
		}
	}
}

// settleItems writes down the states of items; a resource that the sample has not met has none.
func (r *Recorder) settleItems(items []quota.ItemCount, now number) {
	found := map[*series]bool{}
	for _, c := range items {
		if s := r.resources.meet(Key{Tree: c.Tree, Resource: c.Resource}, now); s != nil {
			found[s] = true
			s.standStates(now, c.States)
		}
	}
	for s := range r.resources.all() {
		if !found[s] {
			s.standStates(now, nil)
		}
	}
}
