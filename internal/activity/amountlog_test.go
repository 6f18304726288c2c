package activity

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
)

// plainLog is the obvious amountLog: what was set at each step. It drops what the clock undoes, and what is not shown.
type plainLog map[stepNumber]levelOf

func (p plainLog) set(n stepNumber, level levelOf) {
	for later := range p {
		if later > n {
			delete(p, later)
		}
	}
	p[n] = level
	for old := range p {
		if _, newer := p.lastUpTo(n.firstShown()); old < newer {
			delete(p, old)
		}
	}
}

// lastUpTo is what was set last up to a step, and when.
func (p plainLog) lastUpTo(n stepNumber) (level levelOf, at stepNumber) {
	for number := range p {
		if number <= n && number >= at {
			level, at = p[number], number
		}
	}
	return level, at
}

func (p plainLog) listAmounts(from, to stepNumber) []Step {
	list := make([]Step, to-from+1)
	for n := from; n <= to; n++ {
		if level, _ := p.lastUpTo(n); level.exists {
			list[n-from].Amounts = []Amount{{Resource: "cores", Used: level.used, Waiting: level.waiting, Limit: level.limit}}
		}
	}
	return list
}

// TestAmountLogs compares a log with the obvious one, over days in which the clock is set and resources come and go.
func TestAmountLogs(t *testing.T) {
	t.Parallel()
	amounts := rapid.SampledFrom([]quota.Amount{0, 1, 2, 300, 1 << 40, quota.MaxAmount})
	levels := rapid.Custom(func(t *rapid.T) levelOf {
		if rapid.IntRange(0, 5).Draw(t, "exists") == 0 {
			return levelOf{}
		}
		level := levelOf{exists: true, used: amounts.Draw(t, "used"), waiting: amounts.Draw(t, "waiting")}
		level.limit.Kind = quota.LimitKind(rapid.IntRange(0, 3).Draw(t, "kind"))
		if level.limit.HasAmount() {
			level.limit.Amount = amounts.Draw(t, "limit")
		}
		return level
	})
	verify.Check(t, func(t *rapid.T) {
		log, plain, now := &amountLog{resource: "cores"}, plainLog{}, stepNumber(1_000)
		for range 60 {
			step := rapid.SampledFrom([]int{0, 0, 0, 1, 1, 2, 40, 300, -1, -4}).Draw(t, "step")
			now = stepNumber(max(0, int(now)+step))
			level := levels.Draw(t, "level")
			log.set(now, level)
			plain.set(now, level)
			obvious, packed := plain.listAmounts(now.firstShown(), now), log.listAmounts(now)
			if !reflect.DeepEqual(obvious, packed) { // cmp.Diff takes more than ten times longer
				t.Fatalf("at step %d (-obvious +packed):\n%s", now, cmp.Diff(obvious, packed))
			}
			log.walk(func(e levelEntry, _ int) bool {
				if e.number <= now.firstShown() {
					t.Fatalf("at step %d the entry of step %d is kept", now, e.number)
				}
				return true
			})
		}
	})
}

func (t *amountLog) listAmounts(to stepNumber) []Step {
	list := make([]Step, to-to.firstShown()+1)
	t.addTo(list, to.firstShown())
	return list
}

// TestTheClockOfAmountsIsSetFarBack: what comes again is dropped, also what was kept from before the last day.
func TestTheClockOfAmountsIsSetFarBack(t *testing.T) {
	t.Parallel()
	log := &amountLog{resource: "cores"}
	for _, n := range []stepNumber{1_000, 1_100, 1_500} {
		log.set(n, levelOf{exists: true, used: quota.Amount(n)})
	}
	for _, n := range []stepNumber{10, 12} {
		log.set(n, levelOf{exists: true, used: quota.Amount(n)})
	}
	used := map[int]quota.Amount{}
	for i, step := range log.listAmounts(13) {
		for _, a := range step.Amounts {
			used[i] = a.Used
		}
	}
	if diff := cmp.Diff(map[int]quota.Amount{10: 10, 11: 10, 12: 12, 13: 12}, used); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}
