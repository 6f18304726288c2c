package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// TestWatchGoesOnElsewhere: every change is reported once and in order although servers stop and streams break.
func TestWatchGoesOnElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeCluster()
		c := p.client(t)
		ctx, cancel := context.WithCancel(t.Context())
		var seen []string
		ended := make(chan error)
		go func() {
			ended <- c.Watch(ctx, &quoratev1.WatchEventsRequest{},
				func(m *quoratev1.WatchEventsResponse) error {
					c := m.GetChange()
					seen = append(seen, fmt.Sprintf("%d %s %s", m.GetIndex(), c.GetAllocation().GetId(), c.GetKind()))
					return nil
				})
		}()
		var want []string
		for i := range 10 {
			id := fmt.Sprintf("a%d", i)
			p.set(func() {
				p.gone = map[string]bool{fmt.Sprintf("n%d", i%3+1): true}
				p.cuts = i % 3
				p.grant(&quoratev1.Allocation{Id: id})
				p.finish(id, quoratev1.AllocationState_ALLOCATION_STATE_RELEASED)
			})
			want = append(
				want,
				fmt.Sprintf("%d %s ALLOCATION_CHANGE_KIND_GRANTED", 2*i+1, id),
				fmt.Sprintf("%d %s ALLOCATION_CHANGE_KIND_ENDED", 2*i+2, id),
			)
			time.Sleep(time.Minute)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Watch = %v", err)
		}
		if !slices.Equal(seen, want) {
			t.Errorf("seen %q", seen)
		}
	})
}

func TestWatchEnds(t *testing.T) {
	enough := errors.New("enough")
	synctest.Test(t, func(t *testing.T) {
		p := newFakeCluster()
		c := p.client(t)
		p.set(func() { p.grant(&quoratev1.Allocation{Id: "a"}) })
		err := c.Watch(
			t.Context(),
			&quoratev1.WatchEventsRequest{},
			func(*quoratev1.WatchEventsResponse) error { return enough },
		)
		if !errors.Is(err, enough) {
			t.Errorf("when the caller has enough: %v", err)
		}
		p.set(func() { p.gone = map[string]bool{"n1": true, "n2": true, "n3": true} })
		began := time.Now()
		if err := c.Watch(
			t.Context(),
			&quoratev1.WatchEventsRequest{},
			nil,
		); !errors.Is(err, client.ErrUnavailable) ||
			time.Since(began) > time.Minute {
			t.Errorf("when no server answers: %v after %v", err, time.Since(began))
		}
	})
}

// TestWatchPassesAnswersOn: a refusal of a server is returned and not retried at another.
func TestWatchPassesAnswersOn(t *testing.T) {
	s := &server{watch: func() error { return connect.NewError(connect.CodeOutOfRange, errors.New("so long ago")) }}
	err := newClient(t, []string{s.start(t)}).Watch(t.Context(), &quoratev1.WatchEventsRequest{AfterIndex: 1}, nil)
	if connect.CodeOf(err) != connect.CodeOutOfRange {
		t.Errorf("Watch = %v", err)
	}
}
