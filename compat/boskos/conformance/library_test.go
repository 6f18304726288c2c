package conformance

import (
	"context"
	"errors"
	"testing"
	"time"

	"sigs.k8s.io/boskos/client"
	"sigs.k8s.io/boskos/common"
)

// lease is the life of a lease by way of the Go library, each step through another node than the one before.
func (c *cluster) lease(t *testing.T) {
	t.Helper()
	first, second, third := c.url(c.Servers[0]), c.url(c.Servers[1]), c.url(c.Servers[2])

	me := newClient(t, "me", first)
	got, err := me.Acquire("slice", "free", "leased")
	if err != nil || got.Owner != "me" || got.State != "leased" || got.Type != "slice" {
		t.Fatalf("Acquire = %+v, %v", got, err)
	}
	data := common.UserDataFromMap(common.UserDataMap{"region": "eu"})
	for _, url := range []string{first, second, third} {
		if err := newClient(t, "me", url).Update(got.Name, "leased", data); err != nil {
			t.Errorf("Update by %s: %v", url, err)
		}
	}
	if err := me.UpdateOne(got.Name, "leased", nil); err != nil {
		t.Error(err)
	}
	if err := newClient(t, "me", second).Release(got.Name, "free"); err != nil {
		t.Error(err)
	}
	// The one that was just given back comes last.
	names, all := []string{}, newClient(t, "all", third)
	for range 3 {
		r, err := all.Acquire("slice", "free", "busy")
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, r.Name)
	}
	if names[2] != got.Name {
		t.Errorf("got %v, want %s last", names, got.Name)
	}
	metric, err := newClient(t, "me", second).Metric("slice")
	if err != nil || metric.Current["busy"] != 3 || metric.Owners["all"] != 3 {
		t.Errorf("Metric = %+v, %v", metric, err)
	}
	if _, err := me.Acquire("slice", "free", "busy"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("Acquire of what is leased: %v", err)
	}
	if _, err := me.Acquire("slcie", "free", "busy"); !errors.Is(err, client.ErrTypeNotFound) {
		t.Errorf("Acquire of an unknown type: %v", err)
	}
	if err := all.ReleaseAll("free"); err != nil {
		t.Error(err)
	}
	if err := all.Release(names[0], "free"); err == nil {
		t.Error("what was released can be released again")
	}
}

// tools do what janitors, reapers and masons do.
func (c *cluster) tools(t *testing.T) {
	t.Helper()
	first, second, third := c.url(c.Servers[0]), c.url(c.Servers[1]), c.url(c.Servers[2])

	janitor := newClient(t, "janitor", second)
	dirty, err := janitor.Acquire("project", "dirty", "cleaning")
	if err != nil {
		t.Fatal(err)
	}
	if err := janitor.ReleaseOne(dirty.Name, "free"); err != nil {
		t.Error(err)
	}
	mason := newClient(t, "mason", third)
	names := []string{"project-1", "eu--slice-1"}
	if _, err := newClient(t, "job", first).Acquire("project", "free", "busy"); err != nil {
		t.Fatal(err)
	}
	if _, err := mason.AcquireByState("free", "building", names); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("AcquireByState of what is leased in part: %v", err)
	}
	lost, err := newClient(t, "reaper", second).Reset("project", "busy", 0, "free")
	if err != nil || lost["project-1"] != "job" || len(lost) != 1 {
		t.Errorf("Reset = %v, %v", lost, err)
	}
	parts, err := mason.AcquireByState("free", "building", names)
	if err != nil || len(parts) != 2 {
		t.Fatalf("AcquireByState = %v, %v", parts, err)
	}
	if err := mason.UpdateAll("building"); err != nil {
		t.Error(err)
	}
	if err := mason.ReleaseAll("free"); err != nil {
		t.Error(err)
	}
	// Made on demand, twice and no more.
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range 2 {
		if _, err := mason.AcquireWait(ctx, "network", "free", "leased"); err != nil {
			t.Error(err)
		}
	}
	if _, err := mason.Acquire("network", "free", "leased"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("a third network: %v", err)
	}
}

// line: those who wait are served in the order in which they came, no matter which node they ask, although
// the leader is killed meanwhile.
func (c *cluster) line(t *testing.T) {
	t.Helper()
	_, others := c.Leader(t)
	holder := newClient(t, "holder", c.url(others[0]))
	if _, err := holder.Acquire("queue", "dirty", "busy"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	served := make(chan string, 2)
	for i, owner := range []string{"first", "second"} {
		waiting := newClient(t, owner, c.url(others[i]))
		if _, err := waiting.AcquireWithPriority("queue", "dirty", "busy", owner); !errors.Is(err, client.ErrNotFound) {
			t.Fatalf("%s is served: %v", owner, err)
		}
		go func() {
			r, err := waiting.AcquireWaitWithPriority(ctx, "queue", "dirty", "busy", owner)
			if err != nil {
				t.Errorf("%s: %v", owner, err)
				return
			}
			served <- owner
			if err := waiting.ReleaseOne(r.Name, "dirty"); err != nil {
				t.Errorf("%s: %v", owner, err)
			}
		}()
	}
	c.loseLeader(t)
	if err := holder.ReleaseAll("dirty"); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"first", "second"} {
		select {
		case got := <-served:
			if got != want {
				t.Errorf("%s is served before %s", got, want)
			}
		case <-time.After(patience):
			t.Fatalf("%s is not granted", want)
		}
	}
}
