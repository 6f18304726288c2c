package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/chaos/nodes"
	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
)

// fakeService answers changes of the membership.
type fakeService struct {
	adminv1connect.ClusterServiceClient

	mu sync.Mutex
	// answers are the errors of the next removals; the last one is repeated.
	answers []error
	forced  []bool
}

func (f *fakeService) RemoveMember(
	_ context.Context, r *adminv1.RemoveMemberRequest,
) (*adminv1.RemoveMemberResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forced = append(f.forced, r.GetForce())
	err := f.answers[0]
	if len(f.answers) > 1 {
		f.answers = f.answers[1:]
	}
	return &adminv1.RemoveMemberResponse{}, err
}

// fakeTarget has three nodes that do not run. One service answers for all.
func fakeTarget(service *fakeService) *Target {
	t := &Target{Cluster: &nodes.Cluster{}, departures: map[int]departure{}}
	for i := range 3 {
		t.Nodes = append(t.Nodes, &nodes.Node{ID: fmt.Sprintf("n%d", i+1)})
		t.clients = append(t.clients, &client.Client{Cluster: service})
	}
	return t
}

func eventText(t *Target) string {
	var lines []string
	for _, e := range t.Events() {
		lines = append(lines, e.Node+" "+e.What)
	}
	return strings.Join(lines, "\n")
}

func newRemoval() *memberChange {
	ask := func(ctx context.Context, c *client.Client, id string, force bool) error {
		_, err := c.Cluster.RemoveMember(ctx, &adminv1.RemoveMemberRequest{Id: id, Force: force})
		return err
	}
	return &memberChange{done: "is not a member any more", ask: ask}
}

func TestRefusedChangeIsForced(t *testing.T) {
	refusal := connect.NewError(connect.CodeFailedPrecondition, errors.New("min-quorum is 3"))
	noLeader := connect.NewError(connect.CodeUnavailable, errors.New("no leader"))
	service := &fakeService{answers: []error{noLeader, refusal, nil}}
	target, c := fakeTarget(service), newRemoval()
	c.startAsking(t.Context(), target, 1)
	<-c.ended
	c.stopAsking(target)
	if got, want := fmt.Sprint(service.forced), "[false false true]"; got != want || !c.confirmed {
		t.Errorf("asked with force: %s, want %s; confirmed: %v", got, want, c.confirmed)
	}
	if text := eventText(target); !strings.Contains(text, "n2 refused: failed_precondition: min-quorum") ||
		!strings.Contains(text, "not a member any more, says n") {
		t.Error(text)
	}
}

func TestUnansweredChangeIsNoted(t *testing.T) {
	service := &fakeService{answers: []error{connect.NewError(connect.CodeUnavailable, errors.New("no leader"))}}
	target, c := fakeTarget(service), newRemoval()
	c.startAsking(t.Context(), target, 0)
	c.stopAsking(target)
	if text := eventText(target); c.confirmed || len(service.forced) == 0 ||
		text != "n1 no answer confirms that it is not a member any more: unavailable: no leader" {
		t.Errorf("confirmed: %v, asked %d times: %s", c.confirmed, len(service.forced), text)
	}
}

// TestSettledMembershipIsKnownToAllVoters: folders are emptied only because of this check.
func TestSettledMembershipIsKnownToAllVoters(t *testing.T) {
	s := membership{leader: 0, term: 4, lastIndex: 90, roles: map[string]adminv1.Seat{
		"n1": adminv1.Seat_SEAT_VOTER, "n2": adminv1.Seat_SEAT_VOTER, "n3": adminv1.Seat_SEAT_NONE,
	}}
	at := func(term, commit uint64) *adminv1.GetStatusResponse {
		return &adminv1.GetStatusResponse{Term: term, CommitIndex: commit}
	}
	for name, c := range map[string]struct {
		second, third *adminv1.GetStatusResponse
		want          string
	}{
		"all voters know":         {at(4, 90), at(2, 11), ""},
		"who is none may be away": {at(4, 95), nil, ""},
		"one is away":             {nil, at(4, 90), "n2 does not answer"},
		"one is in another term":  {at(5, 90), at(4, 90), "n2 is in term 5, not in 4"},
		"one is behind":           {at(4, 89), at(4, 90), "n2 does not know that entry 90 is committed"},
	} {
		got := ""
		statuses := []*adminv1.GetStatusResponse{at(4, 90), c.second, c.third}
		if err := s.checkShared(fakeTarget(nil), statuses); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestMembersChangeOnlyInOneVersion: servers before v0.5 do not have the calls, and admit no members while they lead.
func TestMembersChangeOnlyInOneVersion(t *testing.T) {
	for _, k := range memberKinds() {
		if !k.skipInUpgrade {
			t.Errorf("%s comes while old nodes are there", k.Name)
		}
	}
}
