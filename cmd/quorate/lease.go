package main

import (
	"cmp"
	"fmt"
	"math"
	"strings"
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

func newLeaseCmd(c *cli) *cobra.Command {
	return newGroup("lease", "Run a command for as long as it holds a lease", newLeaseRunCmd(c))
}

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

// lasting writes how long is left, no finer than it matters, and never less than it is.
func lasting(ms int64) string {
	step := 100 * time.Millisecond
	const most = (math.MaxInt64 - int64(time.Minute)) / int64(time.Millisecond) // rounding up must not overflow
	d := time.Duration(max(0, min(ms, most))) * time.Millisecond
	switch {
	case d > time.Hour:
		step = time.Minute
	case d > time.Minute:
		step = time.Second
	}
	return shortSpan((d + step - 1).Truncate(step))
}

// shortSpan writes a time without zeros at its end: 48h, not 48h0m0s.
func shortSpan(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// leaseText says how long a lease lasts, at a moment of ledger time if that is known; nothing for what is no lease.
func leaseText(a *quoratev1.Allocation, nowMs int64) string {
	if a.GetTtlMs() == 0 || a.GetState() != quoratev1.AllocationState_ALLOCATION_STATE_HELD {
		return ""
	}
	left := ""
	if nowMs > 0 {
		left = " in " + lasting(a.GetExpiresLedgerMs()-nowMs)
	}
	if by := a.GetRevokedBy(); by != "" {
		return fmt.Sprintf("has to give way to %s: ends%s", by, cmp.Or(left, " soon"))
	}
	return fmt.Sprintf("a lease of %s: ends%s unless it is renewed", lasting(a.GetTtlMs()), left)
}

// waitingText says where a request stands that waits.
func waitingText(a *quoratev1.Allocation) string {
	w := a.GetWaiting()
	if w.GetPosition() == 0 { // not in the queue, or not placed there yet
		return ""
	}
	text := fmt.Sprintf("waits at position %d", w.GetPosition())
	if w.GetLine() != "" {
		text += " for " + w.GetLine()
	}
	return text
}
