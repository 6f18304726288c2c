package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// everything is all that the cluster has acknowledged.
type everything struct {
	tree        *quoratev1.Tree
	revision    uint64
	allocations []*quoratev1.Allocation
}

func (s *stage) everything(ctx context.Context) (all everything, err error) {
	_, err = s.ask(ctx, func(ctx context.Context, n *demoNode) error {
		all, err = n.everything(ctx)
		return err
	})
	return all, err
}

func (n *demoNode) everything(ctx context.Context) (everything, error) {
	tree, err := n.trees.GetTree(ctx, &quoratev1.GetTreeRequest{Name: demoTree})
	if err != nil {
		return everything{}, err
	}
	held, err := n.allocations.ListAllocations(ctx, &quoratev1.ListAllocationsRequest{PageSize: 1000})
	if err != nil {
		return everything{}, err
	}
	return everything{tree.GetTree(), tree.GetRevision(), held.GetAllocations()}, nil
}

// equals is an error that names the first difference.
func (a everything) equals(b everything) error {
	if !proto.Equal(a.tree, b.tree) || a.revision != b.revision {
		return fmt.Errorf("the limits were %v at revision %d and are %v at revision %d", a.tree, a.revision, b.tree, b.revision)
	}
	if len(a.allocations) != len(b.allocations) {
		return fmt.Errorf("there were %d allocations and there are %d", len(a.allocations), len(b.allocations))
	}
	for i, held := range a.allocations {
		if !proto.Equal(held, b.allocations[i]) {
			return fmt.Errorf("allocation %v became %v", held, b.allocations[i])
		}
	}
	return nil
}

// crash kills the leader and shows that the others lose nothing and charge nothing twice. It answers who was killed.
func (s *stage) crash(ctx context.Context) (*demoNode, error) {
	before, err := s.everything(ctx)
	if err != nil {
		return nil, err
	}
	leader, err := s.leader(ctx)
	if err != nil {
		return nil, err
	}
	s.show.chapter("kill -9 " + leader.id + ", the leader, as a power cut would")
	if err := leader.kill(); err != nil {
		return nil, err
	}
	began := time.Now()
	after, err := s.everything(ctx) // a linearizable read: it is answered once there is a new leader
	if err != nil {
		return nil, fmt.Errorf("after the crash: %w", err)
	}
	next, err := s.leader(ctx)
	if err != nil {
		return nil, err
	}
	s.show.fact("%s leads after %.1f s; nobody had to do anything", next.id, time.Since(began).Seconds())
	if err := before.equals(after); err != nil {
		return nil, fmt.Errorf("after the crash something is not as it was: %w", err)
	}
	s.show.fact("all %d allocations and all limits are there, at revision %d as before", len(after.allocations), after.revision)
	return leader, s.repeat(ctx)
}

// repeat sends a request again that was acknowledged before the crash, as a caller would who lost the answer.
func (s *stage) repeat(ctx context.Context) error {
	before, err := s.usage(ctx)
	if err != nil {
		return err
	}
	var again *quoratev1.AllocateResponse
	_, err = s.ask(ctx, func(ctx context.Context, n *demoNode) error {
		again, err = n.allocations.Allocate(ctx, demoSeed[0].request())
		return err
	})
	if err != nil {
		return fmt.Errorf("repeating %s: %w", demoSeed[0].id, err)
	}
	after, err := s.usage(ctx)
	switch {
	case err != nil:
		return err
	case !again.GetRepeated() || after[atlas] != before[atlas]:
		return fmt.Errorf("repeating %s charged it again: %d before, %d after", demoSeed[0].id, before[atlas], after[atlas])
	}
	s.show.fact("%s is requested once more under the same id: the first grant again (fence %d), nothing is charged twice", demoSeed[0].id, again.GetFence())
	return nil
}

// leader asks any node who leads.
func (s *stage) leader(ctx context.Context) (*demoNode, error) {
	ctx, cancel := context.WithTimeout(ctx, demoPatience)
	defer cancel()
	for {
		var id string
		_, err := s.ask(ctx, func(ctx context.Context, n *demoNode) error {
			status, err := n.cluster.GetStatus(ctx, &quoratev1.GetStatusRequest{Local: true})
			id = status.GetLeaderId()
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, n := range s.cluster.nodes {
			if n.id == id && n.runs() {
				return n, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, errors.New("no server knows a leader")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// comeback starts the killed node again and shows that it catches up.
func (s *stage) comeback(ctx context.Context, killed *demoNode) error {
	s.show.chapter("start " + killed.id + " again on the data that it left")
	want, err := s.everything(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := s.cluster.start(killed); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, demoPatience)
	defer cancel()
	if err := killed.ready(ctx); err != nil {
		return err
	}
	got, err := killed.everything(ctx)
	if err != nil {
		return fmt.Errorf("reading from %s: %w", killed.id, err)
	}
	if err := want.equals(got); err != nil {
		return fmt.Errorf("%s did not catch up: %w", killed.id, err)
	}
	status, err := killed.cluster.GetStatus(ctx, &quoratev1.GetStatusRequest{Local: true})
	if err != nil {
		return err
	}
	s.show.fact("%s has caught up after %.1f s, at log index %d, and answers like the others", killed.id, time.Since(began).Seconds(), status.GetAppliedIndex())
	return nil
}
