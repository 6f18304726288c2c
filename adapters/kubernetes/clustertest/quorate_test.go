package clustertest

import (
	"testing"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/servertest"
)

type quorateServers struct {
	*servertest.Cluster

	// token is the file with the token that commands present; empty for none.
	token string
}

func startQuorate(t *testing.T, manifest string) *quorateServers {
	t.Helper()
	q := startServers(t)
	q.run(t, "apply", "-f", writeFile(t, "trees.yaml", manifest))
	return q
}

func startServers(t *testing.T, settings ...string) *quorateServers {
	t.Helper()
	return &quorateServers{Cluster: servertest.StartCluster(t, servertest.Settings{Args: settings, Patience: patience})}
}

func (q *quorateServers) run(t *testing.T, args ...string) string {
	t.Helper()
	if q.token != "" {
		args = append(args, "--token-file", q.token)
	}
	return q.Run(t, args...)
}

// restartLeader kills the leader and starts it again.
func (q *quorateServers) restartLeader(t *testing.T) {
	t.Helper()
	leader, _ := q.Leader(t)
	leader.Restart(t)
}

func (q *quorateServers) client(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(q.URLs)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (q *quorateServers) records(t *testing.T) (held, waiting []string) {
	t.Helper()
	c := q.client(t)
	list, err := c.Allocations.ListAllocations(t.Context(), &quoratev1.ListAllocationsRequest{PageSize: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list.GetAllocations() {
		held = append(held, a.GetId())
	}
	queue, err := c.Allocations.ListWaiting(t.Context(), &quoratev1.ListWaitingRequest{PageSize: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range queue.GetRequests() {
		waiting = append(waiting, r.GetAllocation().GetId())
	}
	return held, waiting
}

func (q *quorateServers) awaitEmpty(t *testing.T) {
	t.Helper()
	await(t, "nothing is held and nothing waits", func() bool {
		held, waiting := q.records(t)
		return len(held)+len(waiting) == 0
	})
}
