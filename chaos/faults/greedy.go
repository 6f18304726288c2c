package faults

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

// What a greedy client keeps open at one node.
const (
	greedyBodies     = 128
	greedyReflection = 256
	greedyPosts      = 200
	greedyReads      = 4
	// greedySpan bounds how long one call is kept open; greedyPause is the pause before the next.
	greedySpan  = 8 * time.Second
	greedyPause = 500 * time.Millisecond
)

func clientKinds() []Kind {
	return []Kind{{
		Name: "greedy-client", skipInUpgrade: true, minHold: 4 * time.Second, maxHold: 12 * time.Second,
		Description: "a client keeps the call slots of one node or of all busy with calls that do nothing",
		newFault:    greedyClient,
	}}
}

// greedyClient does not reserve the node, so other faults may hit it at the same time.
func greedyClient(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
	p, everywhere := chooseNode(r, roleAny), r.IntN(2) == 0
	var stop context.CancelFunc
	var calls sync.WaitGroup
	return func(ctx context.Context, t *Target) error {
			attack, cancel := context.WithCancel(context.WithoutCancel(ctx))
			stop = cancel
			for i, url := range t.URLs() {
				if everywhere || i == p.dice%len(t.Nodes) {
					t.Note(i, "a greedy client begins")
					startGreedyCalls(attack, &calls, url, t.GreedyToken)
				}
			}
			return nil
		}, func(_ context.Context, t *Target) error {
			stop()
			calls.Wait()
			t.Note(-1, "the greedy client ends")
			return nil
		}
}

// startGreedyCalls replaces a call that ends by another. All present the token, unless it is empty.
func startGreedyCalls(ctx context.Context, calls *sync.WaitGroup, url, token string) {
	overHTTP2, overHTTP1 := greedyTransport(true), greedyTransport(false)
	keep := func(count int, transport *http.Transport, path, kind string, body func() io.ReadCloser, length int64) {
		header := http.Header{"Content-Type": {kind}}
		if token != "" {
			header.Set("Authorization", "Bearer "+token)
		}
		for range count {
			calls.Go(func() {
				defer transport.CloseIdleConnections()
				for ctx.Err() == nil {
					greedyCall(ctx, transport, url+path, header, body(), length)
				}
			})
		}
	}
	silent := func() io.ReadCloser { r, _ := io.Pipe(); return r }
	keep(greedyBodies, overHTTP2, "/quorate.v1.AllocationService/Allocate", "application/json", silent, 4<<20)
	keep(greedyReflection, overHTTP2, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "application/grpc",
		silent, -1)
	keep(greedyPosts, overHTTP1, "/ws/v1/validate-conf", "text/plain", silent, 100_000)
	question := `{"request":{"id":"greedy","claims":[{"tree":"nowhere","amounts":{"cores":"1"}}]}}`
	keep(greedyReads, overHTTP2, "/quorate.v1.AllocationService/Explain", "application/json",
		func() io.ReadCloser { return io.NopCloser(strings.NewReader(question)) }, int64(len(question)))
}

func greedyTransport(http2 bool) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	return &http.Transport{Protocols: protocols}
}

// greedyCall makes one call and ignores its result: nodes come and go.
func greedyCall(
	ctx context.Context, transport http.RoundTripper, url string, header http.Header, body io.ReadCloser, length int64,
) {
	within, cancel := context.WithTimeout(ctx, greedySpan)
	defer cancel()
	// The HTTP/1.1 transport waits for the body even when the connection is gone.
	defer context.AfterFunc(within, func() { _ = body.Close() })()
	request, err := http.NewRequestWithContext(within, http.MethodPost, url, body)
	if err != nil {
		return
	}
	request.ContentLength, request.Header = length, header.Clone()
	if answer, err := transport.RoundTrip(request); err == nil {
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	}
	_ = body.Close()
	select {
	case <-ctx.Done():
	case <-time.After(greedyPause):
	}
}
