// Package workload simulates clients of a cluster: they allocate, release, reserve, lease, wait, configure, schedule,
// hold, read and watch, driven by a seed, and record every call. It does not check anything.
//
// Clients use the public API only, and each call goes to one server and is made once: what a client library would
// retry, the history shows as two calls with one id. The workload "joined" calls through package client, which joins
// concurrent calls into batches. Set Config.HTTP to reach servers without sockets.
package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/chaos/history"
)

// Config says which clients call which servers.
type Config struct {
	// Servers are base URLs such as "http://10.0.0.1:7101"; at least one. Every call goes to a random one.
	Servers []string
	// Boskos are base URLs of Boskos front ends; without any, the workload "boskos" does nothing.
	Boskos []string
	// HTTP carries the calls; http.DefaultClient if nil.
	HTTP connect.HTTPClient
	// Seed decides what every client requests, but not how calls interleave.
	Seed uint64
	// Names are the workloads to run; nil is all of them.
	Names []string
	// Clients is the number of clients of each workload; 3 if 0. Some workloads have a single writer.
	Clients int
	// Pause is the mean time between two calls of a client; 10 ms if 0.
	Pause time.Duration
	// Timeout bounds each call; 3 s if 0.
	Timeout time.Duration
	// Recorder records every call; required.
	Recorder *history.Recorder
}

type workloadSpec struct {
	// trees are the trees that SetUp creates for it.
	trees func() []treeSpec
	// single limits the workload to one client.
	single bool
	// start returns the step that one client repeats.
	start func(*caller) func(context.Context)
}

func workloads() map[string]workloadSpec {
	return map[string]workloadSpec{
		"deep":     {trees: deepTrees, start: startDeep},
		"pair":     {trees: pairTrees, start: startPair},
		"batch":    {trees: batchTrees, start: startBatch},
		"joined":   {trees: joinedTrees, start: startJoined},
		"retry":    {trees: retryTrees, start: startRetry},
		"reserve":  {trees: reserveTrees, start: startReserve},
		"lease":    {trees: leaseTrees, start: startLease},
		"items":    {trees: itemTrees, start: startItems},
		"wait":     {trees: waitTrees, start: startWait},
		"limits":   {trees: limitTrees, start: startLimits},
		"twins":    {trees: twinTrees, start: startTwins},
		"read":     {start: startRead},
		"watch":    {start: startWatch},
		"boskos":   {trees: boskosTrees, start: startBoskos},
		"calendar": {trees: calendarTrees, start: startCalendar},
		"ranges":   {trees: rangeTrees, start: startRanges},
		"warn":     {trees: warnTrees, start: startWarn},
		"holds":    {trees: holdTrees, start: startHolds},
		"elastic":  {trees: elasticTrees, start: startElastic},
		"quiet":    {trees: quietTrees, single: true, start: startQuiet},
	}
}

// Names returns the names of all workloads, sorted.
func Names() []string { return slices.Sorted(maps.Keys(workloads())) }

func (c Config) withDefaults() (Config, error) {
	c.Clients, c.Pause = cmp.Or(c.Clients, 3), cmp.Or(c.Pause, 10*time.Millisecond)
	c.Timeout = cmp.Or(c.Timeout, 3*time.Second)
	if c.HTTP == nil {
		c.HTTP = http.DefaultClient
	}
	if c.Names == nil {
		c.Names = Names()
	}
	for _, name := range c.Names {
		if _, known := workloads()[name]; !known {
			return c, fmt.Errorf("workload: there is no workload %q, only %q", name, Names())
		}
	}
	if len(c.Servers) == 0 || c.Recorder == nil {
		return c, errors.New("workload: Servers and Recorder must be set")
	}
	return c, nil
}

// Run runs the clients until ctx ends, and returns after the last call has ended, at most Timeout later. Failed calls
// are not errors: they are in the history.
func Run(ctx context.Context, config Config) error {
	config, err := config.withDefaults()
	if err != nil {
		return err
	}
	servers, err := newServers(config)
	if err != nil {
		return err
	}
	var busy sync.WaitGroup
	for _, name := range config.Names {
		clients := config.Clients
		if workloads()[name].single {
			clients = 1
		}
		for number := range clients {
			c := &caller{
				config: config, workload: name, number: number, servers: servers,
				random: clientRandom(config.Seed, name, number),
			}
			busy.Go(func() { c.runSteps(ctx, workloads()[name].start(c)) })
		}
	}
	busy.Wait()
	return nil
}

// clientRandom returns a generator for one client, so that its requests do not depend on other clients.
func clientRandom(seed uint64, name string, number int) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s/%d", name, number) // a hash never fails
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
