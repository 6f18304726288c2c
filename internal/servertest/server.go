package servertest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
)

// Server is one server: where it is, and its process, which may be killed and started again with the same data. As a
// Client it calls this server alone.
type Server struct {
	Client
	*Process // nil before Start

	ID string
	// HTTP, Raft and Gossip are its addresses, as host:port, and Data is the folder of its data.
	HTTP, Raft, Gossip, Data string
	// Args are the arguments of quorate; the first one is the name of the command.
	Args []string
	// ReadyURL answers with status 200 when the server is ready.
	ReadyURL string

	owner testing.TB
}

// URL returns the address of its API.
func (s *Server) URL() string { return s.URLs[0] }

// Start starts the server, which must not run. It ends with the test that was the first to start it.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if s.owner == nil {
		s.owner = t
	}
	s.Process = startProcess(t, s.owner, s.ID, Command(t, s.Args...))
}

// Restart kills the server if it runs, starts it, and waits until it is ready.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if s.Running() {
		s.Kill()
	}
	s.Start(t)
	s.AwaitReady(t)
}

// AwaitReady waits until the server is ready. It fails at once if the server ends.
func (s *Server) AwaitReady(t testing.TB) {
	t.Helper()
	client := s.httpClient(t)
	Await(t, s.patience(), s.ID+" is ready", func() bool {
		if !s.Running() {
			t.Fatalf("%s ended before it was ready: %v\n%s", s.ID, s.State(), s.Output())
		}
		return isReady(client, s.ReadyURL)
	})
}

func isReady(client *http.Client, url string) bool {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	answer, err := client.Do(request)
	return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
}

// leads reports whether the server itself says that it leads: others may name a leader that has just ended.
func (s *Server) leads(client *http.Client) bool {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost,
		s.URL()+"/quorate.admin.v1.ClusterService/GetStatus", strings.NewReader(`{}`))
	if err != nil {
		return false
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		return false
	}
	var status struct{ LeaderID string }
	err = errors.Join(json.NewDecoder(answer.Body).Decode(&status), answer.Body.Close())
	return err == nil && status.LeaderID == s.ID
}
