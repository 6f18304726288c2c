// Package quota has the calls of the quota-manager library of the Multi-Cluster App Dispatcher, and keeps trees,
// forests and allocations in a Quorate cluster instead of the memory of one process.
//
// A program that uses the library imports this package instead of the original's packages quota, core and utils, and
// gives [NewManager] a client:
//
//	cluster, err := client.New([]string{"http://10.0.0.1:7101"})
//	…
//	quotaManager := quota.NewManager(cluster)
//	quotaManager.SetMode(quota.Normal)
//	treeName, err := quotaManager.AddTreeFromString(text)
//	consumerInfo, err := quota.NewConsumerInfoFromFile("job1.json")
//	quotaManager.AddConsumer(consumerInfo)
//	response, err := quotaManager.Allocate(treeName, consumerInfo.GetID())
//
// What differs from the library:
//
//   - Trees, forests and allocations stay when the process ends. Adding a tree that is in the cluster already, with the
//     same content, is not an error, so that a program can start again. Descriptions of consumers, edits of caches,
//     forests without a tree and the mode are in the memory of the Manager.
//   - A consumer that is allocated on a forest is one allocation with a claim in each tree, under the id of the
//     consumer: all of it is granted and preempted together. A consumer that is allocated on one tree alone
//     is an allocation of its own, ID@TREE. One that is allocated again after its end has a number in its id, because
//     ids of allocations are not used twice.
//   - A refused call changes nothing, and its error names the limits in the way.
//   - The defects of the library are not reproduced: docs/from-quota-manager.md lists them.
//
// Several managers, in one process or in several, may use one cluster.
package quota

import (
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/client"
)

const (
	// defaultUndoWindow is how long UndoAllocate is possible after TryAllocate.
	defaultUndoWindow = 30 * time.Second
	// longestUndoWindow is half of the longest reservation of the API: the other half is time for the confirmation.
	longestUndoWindow = 30 * time.Minute
	// confirmPatience is how long the confirmation of a try may take at least.
	confirmPatience = 30 * time.Second
)

// Mode is the mode of a Manager.
type Mode int

const (
	// Normal mode: limits apply.
	Normal Mode = iota
	// Maintenance mode: allocations are held at the groups of their consumers, inner nodes too, regardless of limits.
	Maintenance
)

// Manager has the calls of the library's Manager. It is safe for concurrent use; calls are made one at a time, as in
// the library. A call is bounded by the patience of the client (client.WithPatience).
type Manager struct {
	client *client.Client
	settings

	mu        sync.Mutex
	mode      Mode
	consumers map[string]*ConsumerInfo
	caches    map[string]*TreeCache // by the original name of the tree
	forests   map[string]bool       // those that were added here; the cluster knows a forest by its trees
	known     *configuration        // nil before it is read
	ids       map[string]string     // the id to look for, or to allocate under, by its first id
	listed    bool                  // whether ids has the allocations that were there before
	trial     *trial                // the latest try, until it is undone or confirmed
}

// Option configures a Manager.
type Option func(*settings)

type settings struct {
	log        func(text string)
	undoWindow time.Duration
}

// WithLog sets a function for what the library writes to its log: parts of trees that were left out, and failures of
// calls that cannot return an error. It is called while a call is made, and must not call the Manager.
func WithLog(log func(text string)) Option {
	return func(s *settings) { s.log = log }
}

// WithUndoWindow sets how long after TryAllocate the caller may call UndoAllocate; the default is 30 seconds, the
// most 30 minutes. A try is a reservation: if the process ends within the window, the consumer is not allocated.
func WithUndoWindow(d time.Duration) Option {
	return func(s *settings) { s.undoWindow = min(max(d, time.Millisecond), longestUndoWindow) }
}

// NewManager returns a Manager of the trees in a cluster that have the policy borrowing; other trees are not touched.
// It makes no call. Like the library's, it is in Maintenance mode at first.
func NewManager(cluster *client.Client, options ...Option) *Manager {
	s := settings{log: func(string) {}, undoWindow: defaultUndoWindow}
	for _, option := range options {
		option(&s)
	}
	return &Manager{
		client: cluster, settings: s, mode: Maintenance, consumers: map[string]*ConsumerInfo{},
		caches: map[string]*TreeCache{}, forests: map[string]bool{}, ids: map[string]string{},
	}
}

// Close keeps the consumer of the latest try, which can then no longer be undone. It closes neither the client nor the
// Manager.
func (m *Manager) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keepTrial()
}

func (m *Manager) logf(format string, args ...any) { m.log(fmt.Sprintf(format, args...)) }
