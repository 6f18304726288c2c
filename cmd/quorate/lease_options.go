package main

import (
	"time"

	"github.com/spf13/cobra"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// Bounds of the API for leases and waiting.
const (
	longestTTL   = 7 * 24 * time.Hour
	longestWait  = 7 * 24 * time.Hour
	shortestKeep = time.Second
	longestKeep  = time.Hour
	defaultKeep  = 2 * time.Minute
)

// leaseOptions say how long something is held, and how long it may wait.
type leaseOptions struct {
	ttl, wait, keep time.Duration
	data            []string
}

func (o *leaseOptions) addFlags(cmd *cobra.Command, ttl time.Duration) {
	flags := cmd.Flags()
	flags.DurationVar(&o.ttl, "ttl", ttl, "make it a lease: it ends unless it is renewed in this time, up to 168h (default: what is configured)")
	if ttl > 0 {
		flags.Lookup("ttl").Usage = "the lease ends unless it is renewed in this time, up to 168h"
	}
	flags.DurationVar(&o.wait, "wait", 0, "wait in the queue for so long if it does not fit now, up to 168h")
	flags.DurationVar(&o.keep, "keep", 0, "stay in the queue for so long without a sign of this command, 1s to 1h (default 2m0s)")
	flags.StringArrayVar(&o.data, "data", nil, "a `name=value` that the lease carries for its holder")
}

// check says what a person mixed up, before any server is asked.
func (o *leaseOptions) check() error {
	whole := func(d time.Duration) bool { return d%time.Millisecond == 0 }
	switch {
	case o.ttl < 0 || o.ttl > longestTTL || !whole(o.ttl):
		return usagef("--ttl is a time from 1ms to 168h, not %v", o.ttl)
	case o.wait < 0 || o.wait > longestWait || !whole(o.wait):
		return usagef("--wait is a time from 1ms to 168h, not %v", o.wait)
	case o.keep != 0 && (o.keep < shortestKeep || o.keep > longestKeep || !whole(o.keep)):
		return usagef("--keep is a time from 1s to 1h, not %v", o.keep)
	case o.keep != 0 && o.wait == 0:
		return usagef("--keep says how long a request stays in the queue: it needs --wait")
	}
	_, err := pairs("--data", o.data)
	return err
}

// set puts what was typed into a request.
func (o *leaseOptions) set(request *quoratev1.AllocateRequest) error {
	data, err := pairs("--data", o.data)
	if err != nil {
		return err
	}
	request.TtlMs, request.UserData = o.ttl.Milliseconds(), data
	if o.wait > 0 {
		request.Mode, request.WaitMs, request.KeepMs = quoratev1.Mode_MODE_WAIT, o.wait.Milliseconds(), o.keep.Milliseconds()
	}
	return nil
}
