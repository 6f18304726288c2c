package fsm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/quota"
)

func holdsAfter(t *testing.T, f *FSM, index uint64) string {
	t.Helper()
	page, err := f.ReadFeed(After(index), FeedSize)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range page.Events {
		if e.Allocation == nil {
			continue
		}
		r := AuditHold(e)
		if r.Kind != audit.Hold || r.Index != e.Index || r.Outcome != audit.Applied || r.TimeMs != int64(e.At) {
			t.Errorf("the record is %+v", r)
		}
		line := fmt.Sprintf("%s%s %s %s", r.Actor.Kind, strings.TrimSuffix(" "+r.Actor.User, " "), r.Action, r.Detail)
		for _, c := range r.Changes {
			line += fmt.Sprintf("; %s:%s %s: %q -> %q", c.Tree, c.Node, c.Field, c.Before, c.After)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// TestHoldsAreRecorded: a record of what happens to an allocation says who caused it, also when that is not its owner,
// and what is held where; time is the system, which here also ends what the samples of earlier formats hold.
func TestHoldsAreRecorded(t *testing.T) {
	f := accessFSM(t)
	before := f.applied
	ask := func(id string, change func(*quota.Allocate)) quota.Allocate {
		a := quota.Allocate{ID: id, Claims: []quota.Claim{{
			Tree: "bound", Node: "a", Amounts: quota.Vector{{Resource: "cores", Amount: 1}},
		}}}
		change(&a)
		return a
	}
	apply := func(days quota.Instant, parts ...Part) {
		data, err := JoinEntry(quota.Stamp{At: days * 24 * 3_600_000, Wall: 1_800_000_000_000}, parts...)
		if err != nil {
			t.Fatal(err)
		}
		applyData(f, f.applied+1, data)
	}
	apply(1, partOf(t, evaCaller, ask("corp/eva plain", func(*quota.Allocate) {}),
		ask("corp/eva lease", func(a *quota.Allocate) { a.TTL = 1000 })))
	apply(1, partOf(t, adminCaller, quota.Release{ID: "corp/eva plain"}))
	apply(30, partOf(t, systemCaller, quota.Expire{Most: 100}))
	const want = `external corp/eva granted allocation corp/eva plain of corp/eva; bound:a allocation corp/eva plain: "" -> "cores=1"
external corp/eva granted allocation corp/eva lease of corp/eva; bound:a allocation corp/eva lease: "" -> "cores=1"
account account/admin released allocation corp/eva plain of corp/eva; bound:a allocation corp/eva plain: "cores=1" -> ""
system expired allocation named; lab:team allocation named: "bench=1 items" -> ""
system expired allocation held; lab:team allocation held: "bench=2 items slice=1 items" -> ""
system expired allocation reserved; soft:b allocation reserved: "cpu=3 dev=2 items vm=1 items" -> ""
system restored allocation victim; soft:a allocation victim: "" -> "cpu=3 dev=1 items"; ` +
		`projects:made allocation victim: "" -> "cpu=3"
system abandoned allocation waits; lab:team allocation waits: "bench=1 items" -> ""
system abandoned allocation for-b3; lab:team allocation for-b3: "bench=1 items" -> ""
system abandoned allocation behind; lab:team allocation behind: "cpu=1" -> ""
system expired allocation unclaimed; lab:team allocation unclaimed: "cpu=4" -> ""
system expired allocation corp/eva lease of corp/eva; bound:a allocation corp/eva lease: "cores=1" -> ""`
	if got := holdsAfter(t, f, before); got != want {
		t.Errorf("the records are\n%s\nwant\n%s", got, want)
	}
}

// TestEveryEndHasAWord: whatever happens to an allocation is named in its record.
func TestEveryEndHasAWord(t *testing.T) {
	for state := range quota.State(quota.StateCount) {
		isEnd := state != quota.Held && state != quota.Reserved && state != quota.Waiting
		if _, named := endActions[state]; named != isEnd {
			t.Errorf("state %d has a word: %v", state, named)
		}
	}
}

// TestExpiredRequestsAreAudited: a request that was not decided in time has a record, whose actor is the system.
func TestExpiredRequestsAreAudited(t *testing.T) {
	f := accessFSM(t)
	before := f.records.Head().Number
	data, err := JoinEntry(quota.Stamp{At: 30 * 24 * 3_600_000, Wall: 1_800_000_000_000},
		partOf(t, systemCaller, quota.Expire{Most: 100}, quota.Expire{Most: 100}))
	if err != nil {
		t.Fatal(err)
	}
	applyData(f, f.applied+1, data)
	entries := f.records.After(before, 10)
	if len(entries) != 1 {
		t.Fatalf("there are %d records, want one", len(entries))
	}
	r, err := audit.Decode(entries[0].Line)
	if err != nil {
		t.Fatal(err)
	}
	if r.Action != "ExpireRequests" || r.Actor.Kind != "system" || len(r.Changes) != 1 ||
		r.Changes[0].Field != "request 1" || !strings.HasPrefix(r.Changes[0].After, "expired: cores=7 for corp/eva") {
		t.Errorf("the record is %+v", r)
	}
}
