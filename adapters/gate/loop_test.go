package gate

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// newPlay makes a loop between a source with one work and a cluster, neither of which fails.
func newPlay(t *testing.T, settings Settings, works ...Work) (*Loop, *fakeSource, *fakeQuorate) {
	t.Helper()
	always := &callBudget{unlimited: true}
	quorate := &fakeQuorate{callBudget: always, limit: 10}
	source := &fakeSource{
		callBudget: always, quorate: quorate, fail: t.Fatalf, works: works, statuses: map[string]Status{},
	}
	settings.Prefix, settings.Parallel, settings.Log = "p", 1, slog.New(slog.DiscardHandler)
	loop, err := New(settings, source, quorate)
	if err != nil {
		t.Fatal(err)
	}
	quorate.report = loop.noteChange
	return loop, source, quorate
}

func oneWork(cores int64) Work { return Work{Key: "w", Members: []Member{member("a", Closed, cores)}} }

func TestAllocationsOfOtherAdaptersAreLeftAlone(t *testing.T) {
	loop, source, quorate := newPlay(t, Settings{Identity: map[string]string{"cluster": "1"}}, oneWork(2))
	strange := &quoratev1.Allocation{
		Id: "p/other", State: quoratev1.AllocationState_ALLOCATION_STATE_HELD, Labels: map[string]string{"cluster": "2"},
	}
	quorate.records = append(quorate.records, strange)
	if _, err := loop.resync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		loop.pass(t.Context())
	}
	if rank(strange) == endedRank || quorate.find("p/other") != strange {
		t.Error("the allocation of another cluster was released")
	}
	if source.works[0].Members[0].State != Open || quorate.find("p/w").GetLabels()["cluster"] != "1" {
		t.Errorf("the own work is %+v with %+v", source.works[0], quorate.find("p/w"))
	}
}

func TestAnIDThatIsTakenIsNotUsed(t *testing.T) {
	loop, source, quorate := newPlay(t, Settings{}, oneWork(2))
	taken := &quoratev1.Allocation{Id: "p/w", State: quoratev1.AllocationState_ALLOCATION_STATE_RELEASED, Forced: true}
	quorate.records = append(quorate.records, taken)
	for range 3 {
		loop.pass(t.Context())
	}
	if a := quorate.find("p/w/2"); rank(a) != 1 || source.works[0].Members[0].State != Open {
		t.Errorf("got %+v", a)
	}
}

func TestLeasesAreRenewed(t *testing.T) {
	loop, source, quorate := newPlay(t, Settings{TTL: 6 * time.Hour}, oneWork(2))
	now := time.Unix(1_000_000, 0)
	loop.now, loop.book.now = func() time.Time { return now }, func() time.Time { return now }
	renewed := 0
	loop.quorate = renewals{quorate, &renewed}
	loop.pass(t.Context())
	loop.pass(t.Context())
	for range 5 {
		now = now.Add(time.Hour)
		loop.pass(t.Context())
	}
	if renewed != 1 || quorate.find("p/w").GetTtlMs() != (6*time.Hour).Milliseconds() {
		t.Errorf("renewed %d times in 5 of 6 hours: %+v", renewed, quorate.find("p/w"))
	}
	quorate.set(quorate.find("p/w"), quoratev1.AllocationState_ALLOCATION_STATE_WAITING, nil)
	quorate.drain() // granted from the queue: it must be claimed at once
	source.works[0].Members[0].State = Closed
	loop.pass(t.Context())
	if renewed != 2 || source.works[0].Members[0].State != Open {
		t.Errorf("renewed %d times", renewed)
	}
}

type renewals struct {
	*fakeQuorate
	count *int
}

func (q renewals) Renew(ctx context.Context, r *quoratev1.RenewRequest) (*quoratev1.RenewResponse, error) {
	*q.count++
	return q.fakeQuorate.Renew(ctx, r)
}

func TestUsersAreTold(t *testing.T) {
	loop, source, _ := newPlay(t, Settings{}, oneWork(11))
	loop.pass(t.Context())
	if got := source.statuses["w"]; got != (Status{StatusDenied, "it does not fit"}) {
		t.Errorf("got %+v", got)
	}
	loop, source, _ = newPlay(t, Settings{}, oneWork(2))
	loop.tellUnavailable(t.Context(), errors.New(strings.Repeat("ä", MaxText)))
	got := source.statuses["w"]
	if got.Kind != StatusFailed || len(got.Text) > MaxText || len(got.Text) < MaxText-4 ||
		!strings.HasSuffix(got.Text, "ä…") || !strings.HasPrefix(got.Text, "no server of Quorate answers: ") {
		t.Errorf("%d bytes: %+v", len(got.Text), got)
	}
}

func TestRunFollowsBothSides(t *testing.T) {
	loop, source, quorate := newPlay(t, Settings{}, oneWork(2))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	statuses := make(chan Status, 100)
	loop.source = tellers{source, statuses}
	go func() { done <- loop.Run(ctx) }()
	for s := range statuses {
		if s.Kind == StatusGranted {
			break
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if quorate.held() != 2 {
		t.Errorf("%d are held", quorate.held())
	}
}

type tellers struct {
	*fakeSource
	statuses chan<- Status
}

func (s tellers) Tell(_ context.Context, _ Work, status Status) error {
	s.statuses <- status
	return nil
}

func TestSettings(t *testing.T) {
	for name, s := range map[string]Settings{
		"prefix: ":   {Prefix: "a/b"},
		"identity: ": {Prefix: "p", Identity: nineLabels},
		"ttl: ":      {Prefix: "p", TTL: MaxTTL + 1},
		"refresh: ":  {Prefix: "p", Refresh: time.Hour},
		"resync: ":   {Prefix: "p", Resync: time.Millisecond},
		"parallel: ": {Prefix: "p", Parallel: 1025},
	} {
		if _, err := New(s, nil, nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

var nineLabels = map[string]string{"1": "", "2": "", "3": "", "4": "", "5": "", "6": "", "7": "", "8": "", "9": ""}
