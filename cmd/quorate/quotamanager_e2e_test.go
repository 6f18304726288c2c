package main_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/compat/quotamanager/quota"
)

// managerOf makes the trees and the forest of the quota-manager's example, as a program that uses the library does.
func managerOf(t *testing.T, f serverFlags) *quota.Manager {
	t.Helper()
	cluster, err := client.New([]string{f.baseURL()})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../examples/quota-manager/forest.json")
	if err != nil {
		t.Fatal(err)
	}
	var example struct {
		Trees   []json.RawMessage
		Forests []struct {
			Name  string
			Trees []string
		}
	}
	if err := json.Unmarshal(text, &example); err != nil {
		t.Fatal(err)
	}
	m := quota.NewManager(cluster, quota.WithLog(func(text string) { t.Log(text) }))
	m.SetMode(quota.Normal)
	for _, tree := range example.Trees {
		if _, err := m.AddTreeFromString(string(tree)); err != nil {
			t.Fatal(err)
		}
	}
	for _, forest := range example.Forests {
		if err := m.AddForest(forest.Name); err != nil {
			t.Fatal(err)
		}
		for _, tree := range forest.Trees {
			if err := m.AddTreeToForest(forest.Name, tree); err != nil {
				t.Fatal(err)
			}
		}
	}
	return m
}

// TestQuotaManagerProgram: what a program allocates with the calls of the quota-manager library is there for the
// commands, and for the same program after the server was killed.
func TestQuotaManagerProgram(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	server := startServer(t, f)
	const forest = "Context-Service"
	m := managerOf(t, f)
	info, err := quota.NewConsumerInfoFromFile("../../examples/quota-manager/job1.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.AddConsumer(info); err != nil {
		t.Fatal(err)
	}
	if _, err := m.AllocateForest(forest, "job-1"); err != nil {
		t.Fatal(err)
	}
	playSteps(t, f, []step{
		{"allocation show job-1", 0, "ContextTree:Org-B/Context-4 cpu=2; ServiceTree:Srvc-X cpu=2 disk=1"},
		{
			"allocate --from quota-manager --dry-run --id job-2 ../../examples/quota-manager/job1.json", 3,
			"Context-4 holds 2 of 2 cpu",
		},
	})
	_ = server.Process.Kill()
	<-server.ended
	startServer(t, f)
	m = managerOf(t, f)
	if !m.IsAllocatedForest(forest, "job-1") || !strings.Contains(m.String(), "consumers={ job-1 }") {
		t.Errorf("after the restart: %v", m)
	}
	if !m.DeAllocateForest(forest, "job-1") {
		t.Error("the job is not released")
	}
	playSteps(t, f, []step{{"allocation show job-1", 0, "released"}})
}
