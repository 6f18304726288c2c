// Package faults breaks a cluster of chaos/nodes in every way that it must survive, and heals it again.
//
// A Fault is drawn from a seed before it begins; only the present leader is looked up when it begins. Faults stay
// within what the service promises to survive: data is taken from the disk of one node at a time, and only when the
// other nodes have everything that was acknowledged.
package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// errNoFreeNode is the error of Begin if other faults have reserved all nodes that it could hit. Then nothing
// happens.
var errNoFreeNode = errors.New("other faults have reserved all nodes")

// Fault is one thing that goes wrong. Begin and End note in the target's timeline what they do. End is called after
// every Begin that succeeded. It restores the nodes, and may wait until they run as before.
type Fault struct {
	// Name is the name of the fault's kind.
	Name string
	// Hold is how long the fault lasts.
	Hold       time.Duration
	Begin, End func(ctx context.Context, t *Target) error
	// skipInUpgrade is copied from the kind; isUpgrade is true if the kind happens early in a run.
	skipInUpgrade, isUpgrade bool
}

// Kind is a kind of fault.
type Kind struct {
	Name string
	// Description is one line for people.
	Description string
	// Alone is true for faults that must not be mixed with others: together they could destroy more than the service
	// promises to survive.
	Alone bool
	// skipInUpgrade is true for faults that do not happen while nodes run an older version, which may not survive
	// them.
	skipInUpgrade bool
	// earlySteps, if not 0, is how often the fault happens: at every second step from the beginning of a run, and
	// never later.
	earlySteps int
	// missingNeed describes what the fault needs and the target lacks; empty if it lacks nothing. A nil function means
	// that the fault needs nothing.
	missingNeed func(*Target) string
	// minHold and maxHold bound how long the fault lasts.
	minHold, maxHold time.Duration
	newFault         func(r *rand.Rand) (begin, end func(ctx context.Context, t *Target) error)
}

// Draw draws a fault of the kind.
func (k Kind) Draw(r *rand.Rand) Fault {
	hold := k.minHold
	if k.maxHold > k.minHold {
		hold += time.Duration(r.Int64N(int64(k.maxHold - k.minHold)))
	}
	begin, end := k.newFault(r)
	return Fault{
		Name: k.Name, Hold: hold, Begin: begin, End: end, skipInUpgrade: k.skipInUpgrade,
		isUpgrade: k.earlySteps > 0,
	}
}

// All returns all kinds, by name.
func All() []Kind {
	all := slices.Concat(processKinds(), networkKinds(), diskKinds(), clockKinds(), replaceKinds(), memberKinds(),
		clientKinds(), strangerKinds(), gossipKinds())
	slices.SortFunc(all, func(a, b Kind) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Find returns the kinds with the given names, or all if there are none. Kinds that the target does not support are
// left out; without has the reasons. An unknown name is an error.
func Find(t *Target, names []string) (kinds []Kind, without []string, err error) {
	all := All()
	for _, name := range names {
		if !slices.ContainsFunc(all, func(k Kind) bool { return k.Name == name }) {
			return nil, nil, fmt.Errorf("there is no fault %q; allowed are %s", name,
				strings.Join(kindNames(all), ", "))
		}
	}
	for _, k := range all {
		if len(names) > 0 && !slices.Contains(names, k.Name) {
			continue
		}
		if k.missingNeed != nil {
			if missing := k.missingNeed(t); missing != "" {
				without = append(without, fmt.Sprintf("%s: needs %s", k.Name, missing))
				continue
			}
		}
		kinds = append(kinds, k)
	}
	return kinds, without, nil
}

func kindNames(kinds []Kind) (list []string) {
	for _, k := range kinds {
		list = append(list, k.Name)
	}
	return list
}

func needsNetwork(t *Target) string {
	if t.Networked() {
		return ""
	}
	return "network namespaces"
}

func needsFaultyDisk(t *Target) string {
	for _, n := range t.Nodes {
		if !n.Disk.Faulty() {
			return "FUSE"
		}
	}
	return ""
}

func needsClock(t *Target) string {
	if t.Turnable {
		return ""
	}
	return "a binary with a clock that can be turned"
}
