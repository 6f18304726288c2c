package check

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorate/quorate/chaos/history"
)

const (
	// lateTick is how much time a change of leader may cost beside the time without a leader: a tick, and what it takes
	// to write one.
	lateTick = int64(1500 * time.Millisecond)
	// lateSlack and lateShare, a twentieth, are for transfers too short to be seen and for clocks that differ.
	lateSlack = int64(2 * time.Second)
	lateShare = 20
	// longSilence is how long no call may have an answer before there may have been no leader. No election is shorter.
	longSilence = int64(250 * time.Millisecond)
)

// checkNeverLate (P12): what ends by itself ends when it should, because ledger time passes like that of the callers,
// the time without a leader and a tick for each change of leader aside. Between two reads at the present, ledger time
// may not fall behind by more, however many leaders there were.
func (s *timeline) checkNeverLate() *Verdict {
	v := &Verdict{Promise: "P12", Title: "never late: ledger time does not stand still", Counts: map[string]int{}}
	if s.finals.OlderServers {
		return v // they write no ticks, and tell the time of the last entry
	}
	answered := answeredAtPresent(s.ops)
	var allowed int64 // by how much ledger time may have fallen behind since the first call
	least := int64(never)
	for i, o := range answered {
		if i > 0 {
			allowed += mayFallBehind(answered[i-1], o)
		}
		if o.Ledger == 0 {
			continue
		}
		v.Count("reads", 1)
		if behind := o.Call - o.Ledger*1e6 - allowed - least; least != never && behind > lateSlack {
			v.AddViolation("at %d ms, index %d, ledger time has fallen behind the callers' by %v more than the times "+
				"without a leader and their ticks explain", o.Call/1e6, o.Index, time.Duration(behind))
			least += behind // what is lost is reported once
		}
		least = min(least, o.Return-o.Ledger*1e6-allowed)
	}
	return v
}

// mayFallBehind is by how much ledger time may fall behind that of the callers between two calls.
func mayFallBehind(a, b history.Op) int64 {
	drift := (b.Return - a.Return) / lateShare
	if silence := b.Return - a.Call; silence > longSilence {
		return drift + silence + lateTick
	}
	return drift
}

// answeredAtPresent returns the calls that a leader carried out, by time, without those within which another one began
// and ended: each proves that there was a leader at one moment of it. Only reads at the present have Ledger.
func answeredAtPresent(ops []history.Op) []history.Op {
	var all []history.Op
	for _, o := range ops {
		if o.Outcome != history.OK || o.IsWatched() || o.Stale {
			continue
		}
		if !o.IsRead() {
			o.Ledger = 0
		}
		all = append(all, o)
	}
	slices.SortStableFunc(all, func(a, b history.Op) int { return cmp.Compare(b.Call, a.Call) })
	earliest := int64(never)
	all = slices.DeleteFunc(all, func(o history.Op) bool {
		isLonger := o.Return >= earliest
		earliest = min(earliest, o.Return)
		return isLonger
	})
	slices.Reverse(all)
	return all
}
