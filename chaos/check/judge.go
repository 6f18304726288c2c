package check

import (
	"time"

	"github.com/quorate/quorate/chaos/history"
)

// Options say how long Judge may take, and what it leaves behind.
type Options struct {
	// Timeout bounds the search for an order of each group of trees and each item; a minute if 0. What takes longer is
	// undecided.
	Timeout time.Duration
	// Pictures is a folder for a page of each history for which there is no order; none if empty.
	Pictures string
}

// Judge gives a verdict for each promise, for linearizability and for liveness.
func Judge(h history.History, f Finals) Verdicts { return JudgeWith(h, f, Options{}) }

// JudgeWith is Judge with options.
func JudgeWith(h history.History, f Finals, o Options) Verdicts {
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	s := newTimeline(h, f)
	explained := s.checkExplained()
	return Verdicts{
		s.checkNeverOver(), s.checkNeverTwice(), s.checkNeverLost(), s.checkNeverEarly(), s.checkFenced(), s.checkAllOrNothing(), s.checkRealTimeOrder(), s.checkQueueOrder(),
		s.checkSameEverywhere(), explained, s.checkLinearizable(o, explained), s.checkLive(),
	}
}
