package systems

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
)

const (
	// mostStreams is what the servers are told to allow: one address may have three quarters of it.
	mostStreams = 16384
	// openers open streams at the same time.
	openers = 64
)

// watchIdly opens streams of events that never happen, one allocation each, and returns when all have begun. The
// function closes them.
func (q *quorate) watchIdly(ctx context.Context, node, n int) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	events := quoratev1connect.NewEventServiceClient(&http.Client{Transport: transport}, q.urls[node], q.asCaller()...)
	stop = func() {
		cancel()
		transport.CloseIdleConnections()
	}
	failures := make([]error, openers)
	var opening sync.WaitGroup
	for o := range openers {
		opening.Go(func() {
			for i := o; i < n && failures[o] == nil; i += openers {
				failures[o] = watchNothing(ctx, events, fmt.Sprintf("nobody-%d", i))
			}
		})
	}
	opening.Wait()
	if err := errors.Join(failures...); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// watchNothing returns when the stream has begun, of which the first message tells.
func watchNothing(ctx context.Context, events quoratev1connect.EventServiceClient, id string) error {
	stream, err := events.WatchEvents(ctx, &quoratev1.WatchEventsRequest{
		Allocations: []*quoratev1.AllocationRef{{Id: id}},
	})
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	if !stream.Receive() {
		return fmt.Errorf("watch: %w", errors.Join(stream.Err(), stream.Close()))
	}
	go func() {
		for stream.Receive() {
			continue
		}
		_ = stream.Close() // ctx has ended
	}()
	return nil
}
