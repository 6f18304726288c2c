package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// TestWatchChangesGoesOnElsewhere: every change is told once although servers stop and streams break, also after hours
// without any server.
func TestWatchChangesGoesOnElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeCluster()
		failures := 0
		c := p.client(t, client.WithNotice(func(error) { failures++ }))
		ctx, cancel := context.WithCancel(t.Context())
		var indexes []uint64
		ended := make(chan error)
		go func() {
			ended <- c.WatchChanges(ctx, &quoratev1.WatchChangesRequest{}, func(m *quoratev1.WatchChangesResponse) error {
				if !m.GetHeartbeat() {
					indexes = append(indexes, m.GetIndex())
				}
				return nil
			})
		}()
		var want []uint64
		for i := range 10 {
			p.set(func() {
				p.gone = map[string]bool{fmt.Sprintf("n%d", i%3+1): true}
				p.cuts = i % 3
				p.grant(&quoratev1.Allocation{Id: fmt.Sprint(i)})
			})
			want = append(want, uint64(i+1))
			time.Sleep(time.Minute)
		}
		p.set(func() {
			p.gone, p.cuts = map[string]bool{"n1": true, "n2": true, "n3": true}, 1
			p.grant(&quoratev1.Allocation{Id: "last"})
		})
		time.Sleep(3 * time.Hour)
		p.set(func() { p.gone = nil })
		time.Sleep(time.Hour)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("WatchChanges = %v", err)
		}
		if want = append(want, 11); !slices.Equal(indexes, want) || failures == 0 {
			t.Errorf("told of %v, want %v, after %d failures", indexes, want, failures)
		}
	})
}

// TestWatchChangesEnds: the error of the caller ends it.
func TestWatchChangesEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enough := errors.New("enough")
		if err := newFakeCluster().client(t).WatchChanges(t.Context(), &quoratev1.WatchChangesRequest{},
			func(*quoratev1.WatchChangesResponse) error { return enough }); !errors.Is(err, enough) {
			t.Errorf("WatchChanges = %v", err)
		}
	})
}
