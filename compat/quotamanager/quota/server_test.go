package quota_test

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/compat/quotamanager/quota"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/server"
)

// patience bounds the start of a server on a busy machine.
const patience = 2 * time.Minute

// startCluster starts a server of its own and returns a client of it.
func startCluster(t *testing.T) *client.Client {
	t.Helper()
	return newClient(t, startServer(t))
}

func newClient(t *testing.T, url string, options ...client.Option) *client.Client {
	t.Helper()
	cluster, err := client.New([]string{url}, options...)
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

// startServer starts a server and returns its URL.
func startServer(t *testing.T) string {
	t.Helper()
	s := server.DefaultSettings()
	s.ID, s.DataDir, s.BootstrapExpect = "n1", filepath.Join(t.TempDir(), "data"), 1
	s.HTTPAddr, s.RaftAddr, s.GossipAddr = freeAddress(t), freeAddress(t), freeAddress(t)
	s.Join = []string{s.GossipAddr}
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

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // the port is free either way
	return listener.Addr().String()
}

// newManager returns a Manager in Normal mode that logs to the test.
func newManager(t *testing.T, cluster *client.Client, options ...quota.Option) *quota.Manager {
	t.Helper()
	log := quota.WithLog(func(text string) { t.Log(text) })
	m := quota.NewManager(cluster, append([]quota.Option{log}, options...)...)
	t.Cleanup(m.Close)
	m.SetMode(quota.Normal)
	return m
}

// clearCluster releases everything and deletes all trees.
func clearCluster(t *testing.T, cluster *client.Client) {
	t.Helper()
	ctx := context.Background()
	held, err := cluster.Allocations.ListAllocations(ctx, &quoratev1.ListAllocationsRequest{PageSize: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range held.GetAllocations() {
		if _, err := cluster.Allocations.Release(ctx, &quoratev1.ReleaseRequest{Id: a.GetId()}); err != nil {
			t.Fatal(err)
		}
	}
	trees, err := cluster.Trees.ListTrees(ctx, &quoratev1.ListTreesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tree := range trees.GetTrees() {
		if _, err := cluster.Trees.DeleteTree(ctx, &quoratev1.DeleteTreeRequest{Name: tree.GetName()}); err != nil {
			t.Fatal(err)
		}
	}
}
