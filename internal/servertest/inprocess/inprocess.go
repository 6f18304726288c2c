// Package inprocess starts a server in the process of a test, for tests of one protocol that need neither its files nor
// its end.
package inprocess

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/internal/server"
	"github.com/quorate/quorate/internal/servertest"
)

// patience bounds the start and the end of a server on a busy machine.
const patience = 2 * time.Minute

// Start starts a server with free ports and no data, waits until it is ready, and returns its URL. The server stops
// when the test ends. change, if it is not nil, may change its settings before.
func Start(t testing.TB, change func(*server.Settings)) string {
	t.Helper()
	s, free := server.DefaultSettings(), servertest.FreePorts(t, 3)
	s.ID, s.DataDir, s.BootstrapExpect = "n1", filepath.Join(t.TempDir(), "data"), 1
	s.HTTPAddr, s.RaftAddr, s.GossipAddr = free[0], free[1], free[2]
	s.Join = []string{s.GossipAddr}
	if change != nil {
		change(&s)
	}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	running, err := server.Start(t.Context(), s, server.Process{Version: "test", Log: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := running.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := running.AwaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	return running.URL()
}
