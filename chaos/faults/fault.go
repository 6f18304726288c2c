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

// errNoFreeNode is what Begin answers if other faults have all nodes that it could hit: then nothing happens.
var errNoFreeNode = errors.New("other faults have all nodes")

// Fault is one thing that goes wrong. Both functions note in the target's timeline what they do. End is called after every
// Begin that succeeded, and leaves the nodes running as they were; it may wait until they are.
type Fault struct {
	// Name is that of its kind.
	Name string
	// Hold is how long it should last.
	Hold       time.Duration
	Begin, End func(ctx context.Context, t *Target) error
	// skipInUpgrade is that of its kind, early is true if its kind comes early.
	skipInUpgrade, isUpgrade bool
}

// Kind is a way in which something goes wrong.
type Kind struct {
	Name string
	// Description is one line for people.
	Description string
	// Alone is true for what must not be mixed with others, because together they could break more than is promised.
	Alone bool
	// skipInUpgrade is true for what is left alone while nodes run an older version, which may not have survived it.
	skipInUpgrade bool
	// earlySteps, if not 0, says that it comes so often at the beginning of a run, at every second step, and then no more.
	earlySteps int
	// missingNeed says what of a target it needs; nil if nothing.
	missingNeed func(*Target) string
	// minHold and to bound how long it lasts.
	minHold, maxHold time.Duration
	newFault         func(r *rand.Rand) (begin, end func(ctx context.Context, t *Target) error)
}

// Draw makes a fault of the kind.
func (k Kind) Draw(r *rand.Rand) Fault {
	hold := k.minHold
	if k.maxHold > k.minHold {
		hold += time.Duration(r.Int64N(int64(k.maxHold - k.minHold)))
	}
	begin, end := k.newFault(r)
	return Fault{Name: k.Name, Hold: hold, Begin: begin, End: end, skipInUpgrade: k.skipInUpgrade, isUpgrade: k.earlySteps > 0}
}

// All are all kinds, by name.
func All() []Kind {
	all := slices.Concat(processKinds(), networkKinds(), diskKinds(), clockKinds(), replaceKinds(), memberKinds(), clientKinds(), gossipKinds())
	slices.SortFunc(all, func(a, b Kind) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Find gives the kinds of the names, or all without names. Those that the target does not allow are left out, and the
// sentences say why; a name that does not exist is an error.
func Find(t *Target, names []string) (kinds []Kind, without []string, err error) {
	all := All()
	for _, name := range names {
		if !slices.ContainsFunc(all, func(k Kind) bool { return k.Name == name }) {
			return nil, nil, fmt.Errorf("there is no fault %q; allowed are %s", name, strings.Join(kindNames(all), ", "))
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
