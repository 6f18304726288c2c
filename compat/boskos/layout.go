package boskos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

const (
	// layoutAge is how old the known layout may be: a tenant's new label counts after this time.
	layoutAge = 5 * time.Second
	// mostTrees bounds how many trees are looked through; each holds 512 types.
	mostTrees = 64
)

// layout is the types, the trees that have them, and the nodes at which claims of tenants are made.
type layout struct {
	trees   []string
	types   map[string]place
	tenants []tenant
}

type place struct {
	tree string
	// lifespan is true if its items are removed some time after their release.
	lifespan bool
}

// layoutCaches have a cache for each caller, because callers may see different trees.
type layoutCaches struct {
	api       Trees
	name      string
	caller    func(context.Context) string
	isGuarded func() bool

	mu    sync.Mutex
	known map[string]*layoutCache
}

// mostCallers bounds the cached layouts; beyond it all are forgotten and read again.
const mostCallers = 256

func (c *layoutCaches) cacheOf(ctx context.Context) *layoutCache {
	caller := c.caller(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= mostCallers && c.known[caller] == nil {
		c.known = map[string]*layoutCache{}
	}
	if c.known[caller] == nil {
		c.known[caller] = newLayouts(c.api, c.name)
	}
	return c.known[caller]
}

// withLayout is that of the cache of the caller. In a guarded cluster a caller who sees none of the trees is refused.
func (c *layoutCaches) withLayout(ctx context.Context, do func(*layout) error) error {
	seesNone := false
	err := c.cacheOf(ctx).withLayout(ctx, func(l *layout) error {
		seesNone = len(l.trees) == 0
		return do(l)
	})
	if seesNone && isUnknown(err) && c.isGuarded() {
		return connect.NewError(connect.CodePermissionDenied,
			fmt.Errorf("there is no tree %s, or the caller has no rights in it", c.name))
	}
	return err
}

type layoutCache struct {
	api  Trees
	name string

	mu    sync.Mutex
	known *layout
	read  time.Time // when reading it began
}

func newLayouts(api Trees, name string) *layoutCache { return &layoutCache{api: api, name: name} }

// errUnknown is the error of an unknown type or name.
var errUnknown = connect.NewError(connect.CodeNotFound, errors.New("there is no such thing"))

func isUnknown(err error) bool { return connect.CodeOf(err) == connect.CodeNotFound }

// withLayout calls do with the layout, and again with a fresh one if do did not find something, because it may have
// been applied just now.
func (l *layoutCache) withLayout(ctx context.Context, do func(*layout) error) error {
	for _, know := range []func(context.Context) (*layout, error){l.recentLayout, l.freshLayout} {
		known, err := know(ctx)
		if err != nil {
			return err
		}
		if err := do(known); !isUnknown(err) {
			return err
		}
	}
	return errUnknown
}

// recentLayout may be a few seconds old.
func (l *layoutCache) recentLayout(ctx context.Context) (*layout, error) {
	l.mu.Lock()
	known, read := l.known, l.read
	l.mu.Unlock()
	switch {
	case known == nil:
		return l.freshLayout(ctx)
	case time.Since(read) < layoutAge:
		return known, nil
	}
	return l.renewLayout(ctx, &quoratev1.ReadOptions{Consistency: quoratev1.Consistency_CONSISTENCY_STALE})
}

// freshLayout includes all changes that were applied before the call.
func (l *layoutCache) freshLayout(ctx context.Context) (*layout, error) {
	return l.renewLayout(ctx, nil)
}

// renewLayout reads the layout and caches it, unless the cached one was read later. The lock is not held meanwhile,
// because a caller that has to wait for a leader must not delay callers that need none.
func (l *layoutCache) renewLayout(ctx context.Context, read *quoratev1.ReadOptions) (*layout, error) {
	begun := time.Now()
	found, err := l.loadLayout(ctx, read)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if begun.After(l.read) {
		l.known, l.read = found, begun
	}
	return found, nil
}

// loadLayout reads the trees until one is missing.
func (l *layoutCache) loadLayout(ctx context.Context, read *quoratev1.ReadOptions) (*layout, error) {
	found := &layout{types: map[string]place{}}
	for n := 1; n <= mostTrees; n++ {
		tree, err := l.readTree(ctx, nthTree(l.name, n), read)
		if err != nil {
			return nil, err
		}
		if tree == nil {
			break
		}
		found.addTree(tree)
	}
	for i, t := range found.tenants {
		tree, err := l.readTree(ctx, t.other.tree, read)
		if err != nil {
			return nil, err
		}
		found.tenants[i].other.counts = countedResources(tree)
	}
	return found, nil
}

// readTree returns nil if the tree does not exist.
func (l *layoutCache) readTree(ctx context.Context, name string, read *quoratev1.ReadOptions) (*quoratev1.Tree, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // nothing was asked for
	}
	found, err := l.api.GetTree(ctx, &quoratev1.GetTreeRequest{Name: name, Read: read})
	if isUnknown(err) {
		return nil, nil //nolint:nilnil // there is none, and nothing is wrong with that
	}
	return found.GetTree(), err
}

// nthTree counts from the first tree of types.
func nthTree(name string, n int) string {
	if n == 1 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, n)
}

func (l *layout) addTree(tree *quoratev1.Tree) {
	l.trees = append(l.trees, tree.GetName())
	for _, r := range tree.GetResources() {
		if _, twice := l.types[r.GetName()]; !twice && r.GetUnit() == quoratev1.Unit_UNIT_ITEMS {
			l.types[r.GetName()] = place{tree.GetName(), r.GetItems().GetLifespanMs() > 0}
		}
	}
	if len(l.trees) == 1 { // the others have the same nodes
		l.tenants = tenantsOf(tree)
	}
}

func countedResources(tree *quoratev1.Tree) map[string]bool {
	found := map[string]bool{}
	for _, r := range tree.GetResources() {
		found[r.GetName()] = r.GetUnit() != quoratev1.Unit_UNIT_ITEMS
	}
	return found
}
