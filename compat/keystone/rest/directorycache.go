package rest

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

const (
	// directoryAge is how long a directory is used at most. It follows changes at once; the age is for a restored backup,
	// which can have another configuration under the same revision.
	directoryAge = time.Minute
	// directoryTimeout bounds the reading of a configuration.
	directoryTimeout = 20 * time.Second
	// revisionsPage is how many revisions are looked at before a configuration is read again.
	revisionsPage = 100
)

type directoryCache struct {
	trees   Trees
	newest  atomic.Pointer[datedDirectory]
	reading chan struct{} // holds one element while a call reads
}

type datedDirectory struct {
	*directory
	until time.Time
}

func newDirectoryCache(trees Trees) *directoryCache {
	return &directoryCache{trees: trees, reading: make(chan struct{}, 1)}
}

// at returns the directory of a revision that the log has at an index, or of a later one.
func (c *directoryCache) at(ctx context.Context, revision, index uint64) (*directory, error) {
	if d := c.newest.Load(); d.covers(revision, index) {
		return d.directory, nil
	}
	select {
	case c.reading <- struct{}{}:
		defer func() { <-c.reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	before := c.newest.Load()
	if before.covers(revision, index) {
		return before.directory, nil
	}
	// The directory is for all callers, so it is read by the server itself: without the values of this call.
	own, cancel := context.WithTimeout(context.Background(), directoryTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	d, err := c.renew(own, before, revision, index)
	if err != nil {
		return nil, err
	}
	c.newest.Store(d)
	return d.directory, nil
}

// covers reports whether a directory is that of a revision, or of a later one of the same history.
func (d *datedDirectory) covers(revision, index uint64) bool {
	return d != nil && time.Now().Before(d.until) && (d.revision == revision || d.revision > revision && d.index > index)
}

// renew reads the configuration, unless only limits have changed since the directory before.
func (c *directoryCache) renew(
	ctx context.Context, before *datedDirectory, revision, index uint64,
) (*datedDirectory, error) {
	if before != nil && time.Now().Before(before.until) && before.revision < revision {
		same, err := c.onlyLimitsChanged(ctx, before.revision, revision, index)
		if err != nil {
			return nil, err
		}
		if same {
			renewed := *before.directory
			renewed.revision, renewed.index = revision, index
			return &datedDirectory{&renewed, before.until}, nil
		}
	}
	until := time.Now().Add(directoryAge)
	found, err := c.trees.GetConfiguration(ctx, &adminv1.GetConfigurationRequest{Read: atIndex(index)})
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	return &datedDirectory{newDirectory(found), until}, nil
}

// onlyLimitsChanged reports whether the history shows all changes between two revisions, and all are of limits, which
// are not in a directory.
func (c *directoryCache) onlyLimitsChanged(ctx context.Context, from, to, index uint64) (bool, error) {
	if to-from > revisionsPage {
		return false, nil
	}
	found, err := c.trees.ListRevisions(ctx, &adminv1.ListRevisionsRequest{
		PageSize: int32(to - from), BeforeRevision: to + 1, Read: atIndex(index),
	})
	if err != nil {
		return false, fmt.Errorf("reading the history: %w", err)
	}
	next := to
	for _, r := range found.GetRevisions() {
		if r.GetRevision() != next || int(r.GetChangeCount()) != len(r.GetChanges()) {
			return false, nil
		}
		for _, change := range r.GetChanges() {
			if !strings.HasPrefix(change.GetField(), "limit ") {
				return false, nil
			}
		}
		next--
	}
	return next == from, nil
}

// atIndex are the options of a read that reflects a log index, by this node alone.
func atIndex(index uint64) *quoratev1.ReadOptions {
	return &quoratev1.ReadOptions{Consistency: quoratev1.Consistency_CONSISTENCY_STALE, MinIndex: index}
}

// view is what one call sees: the directory, the trees of which the caller sees a node, and the index of the log that
// all its reads reflect.
type view struct {
	*directory
	visible         []*treeEntry // by name
	revision, index uint64
}

// look begins a call: a linearizable read of the list of trees, which every later read of the call reflects.
func (s *server) look(ctx context.Context) (*view, error) {
	listed, err := s.trees.ListTrees(ctx, &quoratev1.ListTreesRequest{})
	if err != nil {
		return nil, err
	}
	v := &view{revision: listed.GetRevision(), index: listed.GetRead().GetIndex()}
	if v.directory, err = s.directories.at(ctx, v.revision, v.index); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, tree := range listed.GetTrees() {
		names[tree.GetName()] = true
	}
	for _, t := range v.trees {
		if names[t.name] {
			v.visible = append(v.visible, t)
		}
	}
	return v, nil
}
