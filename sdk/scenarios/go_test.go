package scenarios

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// goPlayer plays steps with the Go client, in this process.
type goPlayer struct {
	client *client.Client

	mu      sync.Mutex
	leases  map[string]*client.Lease
	early   map[string]time.Duration
	waiting map[string]chan outcome
	changes map[string]chan *quoratev1.WatchEventsResponse
}

type outcome map[string]any

type goStep struct {
	Do, As, ID, Tree, Node, Resource string
	Request                          json.RawMessage
	Within, Timeout, Count           int
	Amount                           int64
	Background, Hold                 bool
}

func TestGo(t *testing.T) {
	playEverything(t, startGo)
}

func startGo(t *testing.T, servers []string) *player {
	t.Helper()
	c, err := client.New(servers)
	if err != nil {
		t.Fatal(err)
	}
	p := &goPlayer{
		client: c, leases: map[string]*client.Lease{}, early: map[string]time.Duration{},
		waiting: map[string]chan outcome{}, changes: map[string]chan *quoratev1.WatchEventsResponse{},
	}
	stepsIn, steps := io.Pipe()
	answers, answersOut := io.Pipe()
	go func() {
		defer answersOut.Close() //nolint:errcheck // closing a pipe does not fail
		for lines := bufio.NewScanner(stepsIn); lines.Scan(); {
			if err := json.NewEncoder(answersOut).Encode(p.play(t.Context(), lines.Bytes())); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = steps.Close()
		_ = answers.Close()
	})
	return newPlayer(t, steps, answers)
}

func (p *goPlayer) play(ctx context.Context, line []byte) outcome {
	var s goStep
	if err := json.Unmarshal(line, &s); err != nil {
		return outcomeOf(err)
	}
	within := time.Duration(s.Within) * time.Second
	switch s.Do {
	case "acquire":
		return p.acquire(ctx, s)
	case "await":
		select {
		case o := <-p.waiting[s.As]:
			return o
		case <-time.After(within):
			return outcome{"outcome": "waiting"}
		}
	case "release":
		if err := p.lease(s.As).Release(ctx); err != nil {
			return outcomeOf(err)
		}
		return outcome{"outcome": "released"}
	case "await-loss":
		return p.awaitLoss(p.lease(s.As), within)
	case "await-revoked":
		select {
		case <-p.lease(s.As).Revoked():
			return outcome{"outcome": "revoked"}
		case <-time.After(within):
			return outcome{"outcome": "held"}
		}
	case "state":
		answer, err := p.client.Allocations.GetAllocation(ctx, &quoratev1.GetAllocationRequest{Id: s.ID})
		if err != nil {
			return outcomeOf(err)
		}
		return outcome{"outcome": "state", "state": wordOf(answer.GetAllocation().GetState().String(), "ALLOCATION_STATE_")}
	case "set-limit":
		return p.setLimit(ctx, s)
	case "watch":
		return p.watch(ctx, s)
	case "next":
		select {
		case c := <-p.changes[s.As]:
			change := wordOf(c.GetChange().GetKind().String(), "ALLOCATION_CHANGE_KIND_")
			return outcome{"outcome": "change", "change": change, "id": c.GetChange().GetAllocation().GetId()}
		case <-time.After(within):
			return outcome{"outcome": "silent"}
		}
	case "many":
		return p.many(ctx, s)
	}
	return outcome{"outcome": "unsupported", "text": s.Do}
}

func wordOf(name, prefix string) string { return strings.ToLower(strings.TrimPrefix(name, prefix)) }

func (p *goPlayer) lease(name string) *client.Lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leases[name]
}

func (p *goPlayer) acquire(ctx context.Context, s goStep) outcome {
	if !s.Background {
		return p.acquireNow(ctx, s)
	}
	done := make(chan outcome, 1)
	p.waiting[s.As] = done
	go func() { done <- p.acquireNow(ctx, s) }()
	return outcome{"outcome": "started"}
}

func (p *goPlayer) acquireNow(ctx context.Context, s goStep) outcome {
	request := &quoratev1.AllocateRequest{}
	if err := protojson.Unmarshal(s.Request, request); err != nil {
		return outcomeOf(err)
	}
	if s.Timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, time.Duration(s.Timeout)*time.Second)
		defer cancel()
		ctx = limited
	}
	lease, err := p.client.Acquire(ctx, request)
	if err != nil {
		return outcomeOf(err)
	}
	p.mu.Lock()
	p.leases[s.As] = lease
	p.mu.Unlock()
	context.AfterFunc(lease.Context(), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.early[lease.ID()] = time.Until(lease.Ends())
	})
	return outcome{"outcome": "granted", "id": lease.ID(), "fence": lease.Fence(), "items": lease.Items()}
}

func outcomeOf(err error) outcome {
	denied, late := (*client.DeniedError)(nil), (*client.TimedOutError)(nil)
	switch {
	case errors.As(err, &denied):
		var decision struct {
			NeverFits  bool
			Violations []any
		}
		text, fault := protojson.Marshal(denied.Decision)
		if fault = errors.Join(fault, json.Unmarshal(text, &decision)); fault != nil {
			return outcome{"outcome": "error", "text": fault.Error()}
		}
		return outcome{"outcome": "denied", "neverFits": decision.NeverFits, "violations": decision.Violations}
	case errors.As(err, &late):
		return outcome{"outcome": "timed-out"}
	case errors.Is(err, client.ErrUnavailable):
		return outcome{"outcome": "unavailable", "text": err.Error(), "mayBeDone": client.MayBeDone(err)}
	}
	problem, _ := client.ProblemOf(err)
	return outcome{
		"outcome": "failed", "code": connect.CodeOf(err).String(), "reason": problem.GetReason(), "text": err.Error(),
		"mayBeDone": client.MayBeDone(err),
	}
}

func (p *goPlayer) awaitLoss(lease *client.Lease, within time.Duration) outcome {
	select {
	case <-lease.Context().Done():
	case <-time.After(within):
		return outcome{"outcome": "held"}
	}
	lost := (*client.LostError)(nil)
	if cause := context.Cause(lease.Context()); !errors.As(cause, &lost) {
		return outcomeOf(cause)
	}
	ways := map[client.How]string{
		client.Unrenewed: "unrenewed", client.Ended: "ended", client.Preempted: "preempted", client.Taken: "taken",
	}
	for range 100 { // the function that notes it runs after the context has ended
		p.mu.Lock()
		early, noted := p.early[lease.ID()]
		p.mu.Unlock()
		if noted {
			return outcome{"outcome": "lost", "how": ways[lost.How], "earlyMs": early.Milliseconds()}
		}
		time.Sleep(time.Millisecond)
	}
	return outcome{"outcome": "lost", "how": ways[lost.How]}
}

func (p *goPlayer) setLimit(ctx context.Context, s goStep) outcome {
	limit := &quoratev1.Limit{Value: &quoratev1.Limit_Amount{Amount: s.Amount}}
	_, err := p.client.Trees.SetLimits(ctx, &quoratev1.SetLimitsRequest{
		Tree: s.Tree, Node: s.Node, Limits: map[string]*quoratev1.Limit{s.Resource: limit}, Reason: "scenario",
	})
	if err != nil {
		return outcomeOf(err)
	}
	return outcome{"outcome": "set"}
}

func (p *goPlayer) watch(ctx context.Context, s goStep) outcome {
	request := &quoratev1.WatchEventsRequest{}
	if err := protojson.Unmarshal(s.Request, request); err != nil {
		return outcomeOf(err)
	}
	// The client does not tell when a stream begins, so the watch begins at the index of a read.
	answer, err := p.client.Allocations.ListAllocations(ctx, &quoratev1.ListAllocationsRequest{PageSize: 1})
	if err != nil {
		return outcomeOf(err)
	}
	request.AfterIndex = answer.GetRead().GetIndex()
	changes := make(chan *quoratev1.WatchEventsResponse, 100)
	p.changes[s.As] = changes
	go func() {
		_ = p.client.Watch(ctx, request, func(c *quoratev1.WatchEventsResponse) error {
			changes <- c
			return nil
		}) // it ends with the test
	}()
	return outcome{"outcome": "watching"}
}

func (p *goPlayer) many(ctx context.Context, s goStep) outcome {
	outcomes := make([]outcome, s.Count)
	var calls sync.WaitGroup
	for i := range outcomes {
		calls.Go(func() {
			one := s
			one.As = fmt.Sprint("many-", i)
			outcomes[i] = p.acquireNow(ctx, one)
		})
	}
	calls.Wait()
	count := map[any]int{}
	for i, o := range outcomes {
		count[o["outcome"]]++
		if lease := p.lease(fmt.Sprint("many-", i)); lease != nil && !s.Hold {
			if err := lease.Release(ctx); err != nil {
				return outcomeOf(err)
			}
		}
	}
	return outcome{"outcome": "done", "granted": count["granted"], "denied": count["denied"]}
}
