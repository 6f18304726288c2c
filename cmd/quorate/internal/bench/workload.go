//go:build unix

package bench

import (
	"context"
	"strconv"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/load"
)

// The names of workloads that have options of their own.
const (
	workloadBatch  = "batch"
	workloadLeases = "leases"
	workloadReads  = "reads"
	workloadWatch  = "watch"
)

// defaultBatch is the number of allocations in a call of workload batch.
const defaultBatch = 64

type workload struct {
	name, summary string
	// leaves is the default of --leaves; 0 if the workload does not have that option.
	leaves  int
	batches bool // it has --batch
	// iteration is the kind under which whole iterations are measured; empty if they are not.
	iteration string
	tree      func(*session) *quoratev1.Tree
	// begin prepares one measurement and returns what its callers repeat.
	begin func(context.Context, *measurement) (load.Work, error)
}

// allWorkloads are in the order of the help.
var allWorkloads = []workload{
	{
		name: "contended", summary: "allocate and release on one leaf three levels deep",
		leaves: 1, batches: true, iteration: "pair", tree: deepTree, begin: beginPairs,
	},
	{
		name: "spread", summary: "allocate and release on many leaves below the root",
		leaves: 1000, batches: true, iteration: "pair", tree: flatTree, begin: beginPairs,
	},
	{
		name: "levels", summary: "allocate and release on many leaves three levels deep, in ten branches",
		leaves: 1000, batches: true, iteration: "pair", tree: branchedTree, begin: beginPairs,
	},
	{
		name: "principals", summary: "allocate and release for 100 users in groups, with limits for both",
		leaves: 1, batches: true, iteration: "pair", tree: principalTree, begin: beginPairs,
	},
	{
		name: workloadLeases, summary: "take a lease, renew it and release it",
		leaves: 1, iteration: "lease", tree: deepTree, begin: beginLeases,
	},
	{
		name: "items", summary: "take one of many named items and return it",
		iteration: "pair", tree: itemTree, begin: beginItems,
	},
	{
		name: "waiting", summary: "wait in the queue of a leaf that holds a quarter of the callers, and release",
		iteration: "pair", tree: smallTree, begin: beginWaiting,
	},
	{
		name: workloadBatch, summary: "allocate and release on one leaf in batches",
		leaves: 1, batches: true, iteration: "pair", tree: deepTree, begin: beginPairs,
	},
	{
		name: workloadReads, summary: "read the usage of one leaf",
		leaves: 1, tree: deepTree, begin: beginReads,
	},
	{
		name: workloadWatch, summary: "allocate and release beside watchers, and measure the lag of their events",
		leaves: 1, iteration: "pair", tree: deepTree, begin: beginWatch,
	},
}

func workloadNames() []string {
	var names []string
	for _, w := range allWorkloads {
		names = append(names, w.name)
	}
	return names
}

// session is one run of the command against one cluster.
type session struct {
	options options
	quorate *client.Client
	tree    string
}

// measurement is the part of a session with one number of callers.
type measurement struct {
	*session
	number    int // unique in the session; it is part of ids
	callers   int
	readKind  string // with workload reads
	generator *load.Generator
	atEnd     func() // called when all iterations have ended, before the result is made; may be nil
}

func (m *measurement) iterationID(it *load.Iteration) string {
	return m.tree + "-" + strconv.Itoa(m.number) + "-" + strconv.FormatInt(it.Number, 10)
}

// firstID is the id of the allocation with which a measurement learns the log index.
func (m *measurement) firstID() string { return m.tree + "-" + strconv.Itoa(m.number) + "-first" }
