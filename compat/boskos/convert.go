package boskos

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat"
)

const (
	// TreeName is the name of the tree that comes out. If there are more types than a tree holds, they are spread over
	// "boskos", "boskos-2" and so on.
	TreeName = "boskos"

	policy = "open"
)

// envelope is where configurations lie in ConfigMaps.
var envelope = compat.Envelope{
	Keys: []string{"config", "boskos-resources.yaml", "boskos.yaml", "resources.yaml"}, Top: []string{"resources"},
}

// Convert reads a configuration file and answers the tree "boskos" under the policy "open": each type is an itemized
// resource. Its items are called by their static names, or made on demand from min-count to max-count. A lease that
// is not updated for DefaultTTL expires, and its item has the state then that the file gives to new ones. Items on
// demand that are too many or too old wait for a cleaner. The key "quorate" of the file changes both, and makes nodes
// for tenants. The file may be the ConfigMap that Boskos mounts.
func Convert(data []byte) (*compat.Conversion, error) {
	data, note, err := envelope.Open(data)
	if err != nil {
		return nil, err
	}
	config, err := Parse(data)
	if err != nil {
		return nil, err
	}
	c := &compat.Conversion{}
	if note != "" {
		c.Note("%s", note)
	}
	var problems compat.Problems
	pools := poolsOf(config, &problems)
	for _, p := range pools {
		p.checkPool(&problems)
	}
	c.Trees = spreadTrees(pools)
	addTenants(c.Trees, config.Tenants, pools, &problems)
	problems = append(problems, compat.Bounds(c.Trees)...)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	addNotes(c, config, pools)
	return c, nil
}

// spreadTrees distributes the types over as few trees as can have them. A type keeps its tree until the number of trees
// doubles.
func spreadTrees(pools []*pool) []*quoratev1.Tree {
	for n := uint32(1); ; n *= 2 {
		all := make([]*quoratev1.Tree, n)
		for i := range all {
			all[i] = &quoratev1.Tree{Name: nthTree(TreeName, i+1), Policy: policy}
		}
		fit := true
		for _, p := range pools {
			tree := all[hashOf(p.name)%n]
			tree.Resources = append(tree.Resources, p.toResource())
			fit = fit && len(tree.GetResources()) <= compat.MaxResources
		}
		if fit || n > mostTrees {
			return all
		}
	}
}

func hashOf(text string) uint32 {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(text)) // a hash takes everything
	return hash.Sum32()
}

type pool struct {
	name  string
	state string
	names []string
	// made is true for types that have at least one entry without names.
	made     bool
	min, max int64
	lifespan time.Duration
	ttl      time.Duration
	// cleaned is true for types whose resources become toBeDeleted, and go when a cleaner leaves them as tombstones.
	cleaned bool
	cycle   Cycle
}

// poolsOf gathers the entries of each type, sorted by type. Settings that a type has only once are taken from its first
// entry.
func poolsOf(config *Config, problems *compat.Problems) []*pool {
	byName := map[string]*pool{}
	for _, e := range config.Entries {
		p := byName[e.Type]
		if p == nil {
			ttl := new(DefaultTTL)
			p = &pool{name: e.Type, state: e.State, lifespan: e.Lifespan, cycle: e.Cycle}
			p.ttl = *cmp.Or(e.Cycle.TTL, config.TTL, ttl)
			p.cleaned = len(e.Names) == 0 && !*cmp.Or(e.Cycle.NoCleaner, &config.NoCleaner)
			byName[e.Type] = p
		}
		p.names = append(p.names, e.Names...)
		p.made = p.made || len(e.Names) == 0
		p.min, p.max = p.min+e.MinCount, p.max+e.MaxCount
		if p.made && len(p.names) > 0 {
			problems.Add("type %.80q has an entry with names and one with counts: give it one kind", e.Type)
		}
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b *pool) int { return cmp.Compare(a.name, b.name) })
}

// Bounds of the API.
const (
	maxItems = 10_000
	maxTurns = 16
)

func (p *pool) checkPool(problems *compat.Problems) {
	if !compat.IsResource(p.name) {
		problems.Add("type %.80q is not a valid resource name: use 1 to 63 letters, digits and _ . / -", p.name)
	}
	if n := max(int64(len(p.names)), p.max); n > maxItems {
		problems.Add("type %.80q has %d resources; a type may have %d: split it", p.name, n, maxItems)
	}
	if n := len(p.cycle.Turns); n > maxTurns {
		problems.Add("type %.80q has %d turns; up to %d are read", p.name, n, maxTurns)
	}
	if p.cleaned && (p.state == stateToBeDeleted || p.state == stateTombstone) {
		problems.Add("type %.80q: its resources start in the state %s, which is for those that a cleaner removes; give "+
			"another one, or write \"quorate: {cleaner: false}\" for this type", p.name, p.state)
	}
	from := map[string]bool{}
	for _, t := range p.cycle.Turns {
		if p.cleaned && t.State == stateToBeDeleted && t.NewState != stateTombstone {
			problems.Add("type %.80q has a turn from %s to %.80q; what a cleaner removes turns to %s only", p.name,
				t.State, t.NewState, stateTombstone)
		}
		if from[t.State] {
			problems.Add(
				"type %.80q has two turns from the state %.80q: it is not clear which one counts", p.name, t.State)
		}
		from[t.State] = true
	}
}

func (p *pool) toResource() *quoratev1.Resource {
	slices.Sort(p.names)
	spec := &quoratev1.ItemSpec{
		Names: p.names, Min: p.min, Max: p.max, LifespanMs: wholeMs(p.lifespan), TtlMs: wholeMs(p.ttl),
		State: explicitState(p.state), Released: explicitState(cmp.Or(p.cycle.Released, p.state)),
		Expired: p.cycle.Expired,
	}
	if p.cleaned {
		spec.Retired, spec.Removed = stateToBeDeleted, stateTombstone
	}
	for _, t := range p.cycle.Turns {
		spec.Turns = append(spec.Turns, &quoratev1.ItemTurn{State: t.State, NewState: t.NewState, AfterMs: wholeMs(t.After)})
	}
	slices.SortFunc(spec.GetTurns(), func(a, b *quoratev1.ItemTurn) int { return cmp.Compare(a.GetState(), b.GetState()) })
	return &quoratev1.Resource{Name: p.name, Unit: quoratev1.Unit_UNIT_ITEMS, Items: spec}
}

// explicitState leaves out what is meant anyway.
func explicitState(state string) string {
	if state == stateFree {
		return ""
	}
	return state
}
