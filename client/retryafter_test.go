package client_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

func busy(t *testing.T, after time.Duration) error {
	t.Helper()
	detail, err := connect.NewErrorDetail(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
	if err != nil {
		t.Fatal(err)
	}
	failure := connect.NewError(connect.CodeUnavailable, errors.New("says the test"))
	failure.AddDetail(detail)
	return failure
}

// TestABusyServerIsLeftAlone: a call is retried after the pause that an overloaded server requests, not before.
func TestABusyServerIsLeftAlone(t *testing.T) {
	const asked = 400 * time.Millisecond
	var calls atomic.Int32
	var first time.Time
	var pause time.Duration
	s := &server{allocate: func(ctx context.Context, r *quoratev1.AllocateRequest) (*quoratev1.AllocateResponse, error) {
		if calls.Add(1) == 1 {
			first = time.Now()
			return nil, busy(t, asked)
		}
		pause = time.Since(first)
		return grant(ctx, r)
	}}
	var noticed error
	c := newClient(t, []string{s.start(t)}, client.WithNotice(func(err error) { noticed = err }))
	if _, err := c.Allocations.Allocate(t.Context(), &quoratev1.AllocateRequest{Id: "a"}); err != nil {
		t.Fatal(err)
	}
	if pause < asked {
		t.Errorf("it came back after %v, and was asked to stay away for %v", pause, asked)
	}
	if after, found := client.RetryAfter(noticed); !found || after != asked {
		t.Errorf("RetryAfter(%v) = %v, %v", noticed, after, found)
	}
}

func TestRetryAfter(t *testing.T) {
	for said, want := range map[time.Duration]time.Duration{time.Second: time.Second, time.Hour: time.Minute, -1: 0} {
		if got, found := client.RetryAfter(busy(t, said)); got != want || !found {
			t.Errorf("%v: got %v, %v; want %v", said, got, found, want)
		}
	}
	if _, found := client.RetryAfter(errors.New("x")); found {
		t.Error("a hint in any error")
	}
}
