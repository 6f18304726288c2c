package quota_test

import (
	"context"
	"testing"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat/quotamanager/quota"
	"github.com/quorate/quorate/internal/servertest/inprocess"
)

func startCluster(t *testing.T) *client.Client {
	t.Helper()
	return newClient(t, inprocess.Start(t, nil))
}

func newClient(t *testing.T, url string, options ...client.Option) *client.Client {
	t.Helper()
	cluster, err := client.New([]string{url}, options...)
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

func newManager(t *testing.T, cluster *client.Client, options ...quota.Option) *quota.Manager {
	t.Helper()
	log := quota.WithLog(func(text string) { t.Log(text) })
	m := quota.NewManager(cluster, append([]quota.Option{log}, options...)...)
	t.Cleanup(m.Close)
	m.SetMode(quota.Normal)
	return m
}

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
