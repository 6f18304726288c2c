package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

const (
	demoTree     = "cern"
	demoResource = "cores"
	// demoPatience is how long the demo tries to get an answer: an election takes a few seconds.
	demoPatience = 20 * time.Second
)

// stage is where the script is played: it asks one node after the other.
type stage struct {
	cluster *demoCluster
	show    *demoPrinter
	turn    int
}

// result is what came of a move.
type result struct {
	// via is the node that was asked.
	via string
	// refusedAt are the levels that a refusal named.
	refusedAt []string
	// explanation is the server's own.
	explanation string
	over        int64
}

// ask calls the nodes in turn until one answers. Every call names what it does, so repeating it is safe.
func (s *stage) ask(ctx context.Context, call func(context.Context, *demoNode) error) (via string, err error) {
	ctx, cancel := context.WithTimeout(ctx, demoPatience)
	defer cancel()
	for {
		n := s.next()
		if n == nil {
			return "", errors.New("no server runs any more")
		}
		if err = call(ctx, n); !mayPass(err) {
			return n.id, err
		}
		select {
		case <-ctx.Done():
			return n.id, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// mayPass tells whether another node, or the same one later, may give an answer. Connect calls a connection that broke
// canceled.
func mayPass(err error) bool {
	code := connect.CodeOf(err)
	return err != nil && (code == connect.CodeUnavailable || code == connect.CodeCanceled)
}

// next is the node whose turn it is.
func (s *stage) next() *demoNode {
	for range s.cluster.nodes {
		s.turn++
		if n := s.cluster.nodes[s.turn%len(s.cluster.nodes)]; n.runs() {
			return n
		}
	}
	return nil
}

// play makes all moves of a step and compares each with what must come of it.
func (s *stage) play(ctx context.Context, number int, step demoStep) error {
	s.show.step(number, step.title)
	for _, m := range step.moves {
		got, err := s.move(ctx, m)
		if err != nil {
			return fmt.Errorf("step %d, %s: %w", number, m.text(), err)
		}
		s.show.move(m, got)
		if err := s.compare(ctx, m, got); err != nil {
			return fmt.Errorf("step %d, %s: %w", number, m.text(), err)
		}
	}
	return nil
}

// move makes one call. A refusal is a result; an error is an accident.
func (s *stage) move(ctx context.Context, m demoMove) (result, error) {
	var got result
	via, err := s.ask(ctx, func(ctx context.Context, n *demoNode) (err error) {
		switch m.do {
		case setLimit:
			got, err = m.setLimit(ctx, n)
		case claim:
			got, err = m.claim(ctx, n)
		case release:
			got, err = m.release(ctx, n)
		}
		return err
	})
	got.via = via
	if err == nil {
		return got, nil
	}
	var refused *connect.Error
	if !errors.As(err, &refused) {
		return got, err
	}
	if got.refusedAt = levels(refused); len(got.refusedAt) == 0 {
		return got, err
	}
	got.explanation = refused.Message()
	return got, nil
}

func (m demoMove) request() *quoratev1.AllocateRequest {
	return &quoratev1.AllocateRequest{
		Id:     m.id,
		Claims: []*quoratev1.Claim{{Tree: demoTree, Node: m.node, Amounts: map[string]int64{demoResource: m.amount}}},
		Labels: map[string]string{"demo": "cern"},
	}
}

func (m demoMove) claim(ctx context.Context, n *demoNode) (result, error) {
	answer, err := n.allocations.Allocate(ctx, m.request())
	return result{explanation: fmt.Sprintf("%s, fence %d", answer.GetDecision().GetExplanation(), answer.GetFence())}, err
}

func (m demoMove) release(ctx context.Context, n *demoNode) (result, error) {
	answer, err := n.allocations.Release(ctx, &quoratev1.ReleaseRequest{Id: m.id})
	return result{explanation: fmt.Sprintf("fence %d has ended", answer.GetAllocation().GetFence())}, err
}

// setLimit sets a limit and sees by how much the node is over it.
func (m demoMove) setLimit(ctx context.Context, n *demoNode) (got result, err error) {
	answer, err := n.trees.SetLimits(ctx, &quoratev1.SetLimitsRequest{
		Tree: demoTree, Node: m.node, Actor: "demo", Reason: "the CERN script", RequestId: fmt.Sprintf("%s=%d", m.node, m.amount),
		Limits: map[string]*quoratev1.Limit{demoResource: {Value: &quoratev1.Limit_Amount{Amount: m.amount}}},
	})
	for _, c := range answer.GetResult().GetChanges() {
		got.explanation = fmt.Sprintf("%s was %s and is %s, revision %d", c.GetField(), c.GetBefore(), c.GetAfter(), answer.GetResult().GetRevision())
	}
	for _, o := range answer.GetResult().GetOver() {
		if o.GetNode() == m.node {
			got.over = o.GetUsed() - o.GetLimit()
		}
	}
	return got, err
}

// levels are the nodes that a refusal names, in the order it names them.
func levels(refused *connect.Error) []string {
	var names []string
	for _, detail := range refused.Details() {
		value, err := detail.Value()
		if err != nil {
			continue
		}
		switch d := value.(type) {
		case *quoratev1.Decision:
			for _, v := range d.GetViolations() {
				names = append(names, v.GetNode())
			}
		case *quoratev1.Problem:
			for _, b := range d.GetBreaches() {
				names = append(names, b.GetNode())
			}
		}
	}
	return names
}

// compare is an error unless a move ended as the script says.
func (s *stage) compare(ctx context.Context, m demoMove, got result) error {
	if !slices.Equal(got.refusedAt, m.refusedAt) {
		return fmt.Errorf("must be %s, and was %s", verdict(m.refusedAt), verdict(got.refusedAt))
	}
	if got.over != m.over {
		return fmt.Errorf("must leave %s over its limit by %d, and it is over by %d", m.node, m.over, got.over)
	}
	if len(m.usage) == 0 {
		return nil
	}
	used, err := s.usage(ctx)
	if err != nil {
		return err
	}
	for _, node := range slices.Sorted(maps.Keys(m.usage)) {
		if used[node] != m.usage[node] {
			return fmt.Errorf("%s must hold %d afterwards, and holds %d", node, m.usage[node], used[node])
		}
	}
	return nil
}

func verdict(refusedAt []string) string {
	if len(refusedAt) == 0 {
		return "accepted"
	}
	return "refused because of " + strings.Join(refusedAt, ", ")
}

// usage is what each subtree holds.
func (s *stage) usage(ctx context.Context) (map[string]int64, error) {
	used := map[string]int64{}
	nodes, err := s.usageTree(ctx)
	for _, n := range nodes {
		used[n.GetNode()] = n.GetResources()[0].GetSubtree()
	}
	return used, err
}

func (s *stage) usageTree(ctx context.Context) (nodes []*quoratev1.NodeUsage, err error) {
	_, err = s.ask(ctx, func(ctx context.Context, n *demoNode) error {
		answer, err := n.trees.GetUsage(ctx, &quoratev1.GetUsageRequest{Tree: demoTree, Subtree: true})
		nodes = answer.GetNodes()
		return err
	})
	return nodes, err
}
