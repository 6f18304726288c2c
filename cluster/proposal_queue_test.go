package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/quota"
)

func releaseCommands(n, idBytes int) []quota.Command {
	commands := make([]quota.Command, n)
	for i := range commands {
		id := fmt.Sprint(i)
		commands[i] = quota.Release{ID: id + strings.Repeat("x", max(0, idBytes-len(id)))}
	}
	return commands
}

func newTestProposal(commands, bytes int) *proposal {
	return &proposal{
		commands: commands, part: fsm.Part{Data: make([]byte, bytes)}, done: make(chan proposalResult, 1),
		callerErr: func() error { return nil },
	}
}

func TestACallIsDividedIfItIsLarge(t *testing.T) {
	cases := []struct {
		commands, idBytes int
		entries           int
	}{
		{1, 10, 1},
		{1000, 100, 1},
		{fsm.MaxEntryCommands, 10, 1},
		{fsm.MaxEntryCommands + 1, 10, 2},
		{4 * fsm.MaxEntryCommands, 10, 4},
		{64, fsm.MaxEntryBytes / 60, 5},
		{1000, 1100, 2},
		{3, fsm.MaxEntryBytes * 9 / 10, 3},
	}
	for _, c := range cases {
		commands := releaseCommands(c.commands, c.idBytes)
		proposals, err := splitCommands(nil, nil, commands)
		if err != nil || len(proposals) != c.entries {
			t.Errorf("%d commands of %d bytes make %d entries, %v; want %d", c.commands, c.idBytes, len(proposals), err,
				c.entries)
		}
		var joined, one []byte
		for _, p := range proposals {
			joined = append(joined, p.part.Data...)
			if _, err := fsm.JoinEntry(quota.Stamp{At: 1 << 50, Wall: 1 << 50}, p.part); err != nil {
				t.Errorf("%d commands of %d bytes: %v", c.commands, c.idBytes, err)
			}
		}
		for i := range commands {
			part, err := fsm.EncodeCommands(nil, commands[i:i+1])
			if err != nil {
				t.Fatal(err)
			}
			one = append(one, part.Data...)
		}
		if !bytes.Equal(joined, one) {
			t.Errorf("%d commands of %d bytes change their order", c.commands, c.idBytes)
		}
	}
}

func TestWhatNeverFitsIsRefused(t *testing.T) {
	for _, commands := range [][]quota.Command{nil, releaseCommands(1, fsm.MaxEntryBytes)} {
		_, err := splitCommands(nil, nil, commands)
		if e := (*Error)(nil); !errors.As(err, &e) || e.Reason != TooLarge || !e.NotApplied {
			t.Errorf("%d commands: %v, want TOO_LARGE, not applied", len(commands), err)
		}
	}
}

func TestTheQueueFillsEntriesInOrder(t *testing.T) {
	q := newProposalQueue()
	var all []*proposal
	for _, size := range []int{600, 400, 24, 1, 1024, 1} {
		all = append(all, newTestProposal(size, 10))
	}
	if err := q.enqueue(all, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]*proposal{all[:3], all[3:4], all[4:5], all[5:]} {
		if got := q.takeBatch(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("an entry took %d proposals, want %d", len(got), len(want))
		}
	}
	if got := q.takeBatch(); got != nil {
		t.Errorf("an empty queue gave %d proposals", len(got))
	}
}

func TestTheQueueBoundsBytes(t *testing.T) {
	q := newProposalQueue()
	for range 3 {
		if err := q.enqueue([]*proposal{newTestProposal(1, fsm.MaxEntryBytes/2)}, false); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(q.takeBatch()); got != 1 {
		t.Errorf("an entry took %d halves with the overhead of an entry, want 1", got)
	}
}

func TestAFullQueueSaysOverloaded(t *testing.T) {
	q := newProposalQueue()
	var err *Error
	taken := 0
	for ; err == nil && taken < 100; taken++ {
		err = q.enqueue([]*proposal{newTestProposal(fsm.MaxEntryCommands, 10)}, false)
	}
	if err == nil || err.Reason != Overloaded || !err.NotApplied {
		t.Fatalf("after %d full entries: %v, want OVERLOADED, not applied", taken, err)
	}
	q.takeBatch()
	if err := q.enqueue([]*proposal{newTestProposal(1, 10)}, false); err != nil {
		t.Errorf("after room was made: %v", err)
	}
}

func TestWithdrawAndClose(t *testing.T) {
	q := newProposalQueue()
	first, second := newTestProposal(1, 10), newTestProposal(1, 10)
	if err := q.enqueue([]*proposal{first, second}, false); err != nil {
		t.Fatal(err)
	}
	if !q.withdraw(first) || q.withdraw(first) {
		t.Error("a waiting proposal can be withdrawn exactly once")
	}
	q.close()
	r, e := <-second.done, (*Error)(nil)
	if !errors.As(r.err, &e) || e.Reason != NotLeader || !e.NotApplied {
		t.Errorf("a waiting proposal got %v at the close", r.err)
	}
	if err := q.enqueue([]*proposal{first}, false); err == nil || err.Reason != NotLeader || !err.NotApplied {
		t.Errorf("a closed queue answers %v", err)
	}
	if commands, bytes := q.queuedSize(); commands != 0 || bytes != 0 {
		t.Errorf("a closed queue counts %d commands, %d bytes", commands, bytes)
	}
}

func TestPatientProposalsWaitForCompany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newProposalQueue()
		put := func(patient bool, commands int) {
			t.Helper()
			if err := q.enqueue([]*proposal{newTestProposal(commands, 10)}, patient); err != nil {
				t.Fatal(err)
			}
		}
		goes := func(when string, want int) {
			t.Helper()
			synctest.Wait()
			if got := q.takeBatch(); len(got) != want {
				t.Errorf("%s %d proposals went, want %d", when, len(got), want)
			}
		}
		put(true, 1)
		time.Sleep(batchWindow - time.Millisecond)
		put(true, 1)
		goes("before their time", 0)
		time.Sleep(2 * time.Millisecond)
		goes("when the first had waited", 2)

		put(true, 1)
		time.Sleep(batchWindow - time.Millisecond)
		goes("after the others, with a window of its own,", 0)
		put(false, 1)
		put(true, 1)
		goes("with one in a hurry, and before and behind it,", 3)

		put(true, fsm.MaxEntryCommands-1)
		goes("with room left in the entry", 0)
		put(true, 1)
		goes("when there was enough for an entry", 2)
		put(true, 1)
		goes("alone again", 0)
		time.Sleep(batchWindow + time.Millisecond)
		goes("at last", 1)
	})
}

func TestPatientProposalsAreWithdrawnAndRefusedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, first, second := newProposalQueue(), newTestProposal(1, 10), newTestProposal(1, 10)
		if err := q.enqueue([]*proposal{first, second}, true); err != nil {
			t.Fatal(err)
		}
		if !q.withdraw(first) || q.small.commands != 1 {
			t.Errorf("%d commands are left of one", q.small.commands)
		}
		q.close()
		if r := <-second.done; r.err == nil {
			t.Error("a closed queue keeps what waits for company")
		}
		time.Sleep(2 * batchWindow) // no timer is left behind that could find a closed queue
		if err := q.enqueue([]*proposal{first}, true); err == nil {
			t.Error("a closed queue takes more")
		}
	})
}

func TestWhatItsCallerGaveUpIsNotWritten(t *testing.T) {
	q, gone := newProposalQueue(), newTestProposal(3, 10)
	gone.callerErr = func() error { return context.DeadlineExceeded }
	before, behind := newTestProposal(1, 10), newTestProposal(1, 10)
	if err := q.enqueue([]*proposal{before, gone, behind}, false); err != nil {
		t.Fatal(err)
	}
	if got := q.takeBatch(); fmt.Sprint(got) != fmt.Sprint([]*proposal{before, behind}) {
		t.Errorf("an entry took %d proposals, want the two whose callers still wait", len(got))
	}
	r, e := <-gone.done, (*Error)(nil)
	if !errors.As(r.err, &e) || e.Reason != Deadline || !e.NotApplied {
		t.Errorf("the one that was given up got %v, want DEADLINE, not applied", r.err)
	}
	if commands, bytes := q.queuedSize(); commands != 0 || bytes != 0 || q.withdraw(gone) {
		t.Errorf("an empty queue counts %d commands, %d bytes", commands, bytes)
	}
}

// TestSmallCallsPassLargeOnes: between two parts of large calls there is an entry without one, one part is in flight at
// a time, and the parts of a call keep their order.
func TestSmallCallsPassLargeOnes(t *testing.T) {
	q := newProposalQueue()
	put := func(proposals ...*proposal) []*proposal {
		t.Helper()
		if err := q.enqueue(proposals, false); err != nil {
			t.Fatal(err)
		}
		return proposals
	}
	takes := func(when string, want ...*proposal) []*proposal {
		t.Helper()
		got := q.takeBatch()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%s: an entry took %d proposals, want %d", when, len(got), len(want))
		}
		return got
	}
	large := put(newTestProposal(100, largestPart-100), newTestProposal(100, largestPart-100), newTestProposal(1, 10))
	other := put(newTestProposal(1, largeCall+1))
	small := put(newTestProposal(1, 10), newTestProposal(1, 10))
	takes("small calls first", small...)
	later := put(newTestProposal(1, 10))
	first := takes("then a part of a large one, with small ones behind it", large[0], later[0])
	takes("no second while one is on its way")
	again := put(newTestProposal(1, 10))
	takes("but small ones", again...)
	q.entryEnded(again)
	takes("an entry of small ones ends nothing")
	q.entryEnded(first)
	second := takes("the next part", large[1])
	q.entryEnded(second)
	third := takes("a small part of a large call waits for its turn", large[2])
	q.entryEnded(third)
	takes("then the next call", other[0])
	if commands, bytes := q.queuedSize(); commands != 0 || bytes != 0 {
		t.Errorf("an empty queue counts %d commands, %d bytes", commands, bytes)
	}
}

// TestAnExpiryPassesNoLargeCall, because the call may contain a renewal that came in time; other small calls go on
// meanwhile.
func TestAnExpiryPassesNoLargeCall(t *testing.T) {
	q := newProposalQueue()
	expiry, before, small := newTestProposal(1, 10), newTestProposal(1, largeCall+1), newTestProposal(1, 10)
	expiry.keepsOrder = true
	for _, p := range []*proposal{before, expiry, small} {
		if err := q.enqueue([]*proposal{p}, false); err != nil {
			t.Fatal(err)
		}
	}
	var order []*proposal
	for range 3 { // each time something goes, or the last would never end its wait
		if got := q.takeBatch(); len(got) > 0 {
			order = append(order, got...)
			q.entryEnded(got)
		}
	}
	if fmt.Sprint(order) != fmt.Sprint([]*proposal{small, before, expiry}) {
		t.Errorf("they went in another order: %v, want %v", order, []*proposal{small, before, expiry})
	}
	if commands, bytes := q.queuedSize(); commands != 0 || bytes != 0 {
		t.Errorf("an empty queue counts %d commands, %d bytes", commands, bytes)
	}
}

// TestLargeCallsLeaveRoomForSmallOnes: large calls get Overloaded before small ones do.
func TestLargeCallsLeaveRoomForSmallOnes(t *testing.T) {
	q := newProposalQueue()
	var err *Error
	taken := 0
	for ; err == nil && taken < 1000; taken++ {
		err = q.enqueue([]*proposal{newTestProposal(10, largestPart)}, false)
	}
	if _, bytes := q.queuedSize(); err == nil || err.Reason != Overloaded || !err.NotApplied ||
		bytes > maxQueuedBytes/2 {
		t.Fatalf("after %d large calls %d bytes wait: %v", taken, bytes, err)
	}
	if err := q.enqueue([]*proposal{newTestProposal(1000, 1000)}, false); err != nil {
		t.Errorf("a small call: %v", err)
	}
}

// TestASmallEntryWaitsForTheOneInFlight, but not for longer than overlapWait, and a large one not at all.
func TestASmallEntryWaitsForTheOneInFlight(t *testing.T) {
	cases := map[string]struct {
		commands, bytes int
		waits           time.Duration
	}{
		"one command":   {1, 100, overlapWait},
		"many commands": {overlapCommands, 100, 0},
		"many bytes":    {1, overlapBytes, 0},
		"a large call":  {1, largeCall + 1, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, began := newProposalQueue(), time.Now()
				p := newTestProposal(c.commands, c.bytes)
				if err := q.enqueue([]*proposal{p}, false); err != nil {
					t.Fatal(err)
				}
				for {
					<-q.ready
					if batch := q.takeOverlapping(); batch != nil {
						break
					}
				}
				if waited := time.Since(began); waited != c.waits {
					t.Errorf("it waited for %v, want %v", waited, c.waits)
				}
				if q.takeOverlapping() != nil {
					t.Error("an empty queue has an entry")
				}
			})
		})
	}
}

// TestTheEndOfAnEntryReleasesTheNext, which would otherwise wait for overlapWait.
func TestTheEndOfAnEntryReleasesTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newProposalQueue()
		first, second := newTestProposal(1, 100), newTestProposal(1, 100)
		if err := q.enqueue([]*proposal{first}, false); err != nil {
			t.Fatal(err)
		}
		inFlight := q.takeBatch()
		if err := q.enqueue([]*proposal{second}, false); err != nil {
			t.Fatal(err)
		}
		<-q.ready
		if q.takeOverlapping() != nil {
			t.Fatal("a small entry does not wait for the one in flight")
		}
		q.entryEnded(inFlight)
		began := time.Now()
		<-q.ready
		if next := q.takeBatch(); len(next) != 1 || next[0] != second || time.Since(began) != 0 {
			t.Errorf("%d proposals after %v, want the second at once", len(next), time.Since(began))
		}
	})
}

// TestUsersShareTheQueue: one user may have a quarter of the queue, whatever it sends, and others then have room. A
// proposal of a user who has none waiting fits always.
func TestUsersShareTheQueue(t *testing.T) {
	proposalsOf := func(user string, commands, bytes int) []*proposal {
		p := newTestProposal(commands, bytes)
		p.user = user
		return []*proposal{p}
	}
	q := newProposalQueue()
	const call = 100
	fill := func(user string) (taken int) {
		for q.enqueue(proposalsOf(user, call, 10), false) == nil {
			taken++
		}
		return taken
	}
	share := maxQueuedCommands / queuedPerUser / call
	for _, user := range []string{"account/a", "account/b"} {
		if got := fill(user); got != share {
			t.Errorf("%s got %d calls into the queue, want %d", user, got, share)
		}
	}
	err := q.enqueue(proposalsOf("account/a", call, 10), false)
	if err == nil || err.Reason != Overloaded || !err.NotApplied ||
		!strings.Contains(err.Text, "of user account/a wait already, and the share of one user is") {
		t.Errorf("the refusal is %v", err)
	}
	if err := q.enqueue(proposalsOf("account/a", 1, largeCall+1), false); err != nil {
		t.Errorf("a large call: %v", err)
	}
	if got := fill(""); got < share {
		t.Errorf("%d calls without a user, want the rest of the queue", got)
	}
	for len(q.takeBatch()) > 0 {
		q.entryEnded([]*proposal{{large: true}})
	}
	if n := len(q.small.byUser) + len(q.large.byUser); n != 0 {
		t.Errorf("%d users have a share of an empty queue", n)
	}
	if got := fill("account/a"); got != share {
		t.Errorf("after the queue was empty, %d calls, want %d", got, share)
	}
}
