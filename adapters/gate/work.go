package gate

import (
	"maps"
	"slices"
	"strings"
)

// MemberState is the state of a member of a work in the scheduler.
type MemberState int

// The states of a member.
const (
	// Closed: its gate is closed. It does not run and holds nothing.
	Closed MemberState = iota
	// Open: its gate is open. It runs, or the scheduler may start it at any time.
	Open
	// Stopping: its gate is open, and it was told to end. It may still run.
	Stopping
	// Ended: it does not run and will not run again.
	Ended
)

// Claim is what a member needs at one node of one tree, in base units.
type Claim struct {
	Tree, Node string
	Amounts    map[string]int64
}

// Member is one part of a work with a gate of its own, such as a pod.
type Member struct {
	// Key identifies the member in the scheduler.
	Key    string
	State  MemberState
	Claims []Claim
}

// Work is what is granted, opened and ended as a whole: one pod, or a group.
type Work struct {
	// Key identifies the work among all that the adapter asks for: 1 to 48 letters, digits, dots, dashes or underscores.
	Key string
	// Members are its parts, ended ones included as long as the scheduler knows them.
	Members []Member
	// Wanted is how many members must have arrived before the work asks for anything; 0 and 1 mean one.
	Wanted int
	// User and Application are the principal; an application needs a user.
	User, Application string
	Priority          int64
	// Labels are kept with the allocation. The same work must always have the same.
	Labels map[string]string
	// Problem says why the work cannot ask for anything; empty if it can.
	Problem string
}

func (w *Work) count(states ...MemberState) int {
	count := 0
	for i := range w.Members {
		if slices.Contains(states, w.Members[i].State) {
			count++
		}
	}
	return count
}

func (w *Work) isComplete() bool { return len(w.Members) >= max(1, w.Wanted) }

// total is sorted by tree and node.
func (w *Work) total(states ...MemberState) []Claim {
	sum := claimSum{}
	for i := range w.Members {
		if slices.Contains(states, w.Members[i].State) {
			sum.add(w.Members[i].Claims)
		}
	}
	return sum.claims()
}

type place struct{ tree, node string }

type claimSum map[place]map[string]int64

func (s claimSum) add(claims []Claim) {
	for _, c := range claims {
		at := place{c.Tree, c.Node}
		if s[at] == nil {
			s[at] = map[string]int64{}
		}
		for resource, amount := range c.Amounts {
			s[at][resource] += amount
		}
	}
}

// byTree sums over the nodes of each tree: an operator may move an allocation to another node, and it still covers.
func (s claimSum) byTree() claimSum {
	sum := claimSum{}
	for at, amounts := range s {
		sum.add([]Claim{{Tree: at.tree, Amounts: amounts}})
	}
	return sum
}

// fitsInto reports whether no amount of the sum, with more claims added, exceeds that of a grant in the same tree.
func (s claimSum) fitsInto(granted claimSum, more []Claim) bool {
	both := claimSum{}
	both.add(s.claims())
	both.add(more)
	most := granted.byTree()
	for at, amounts := range both.byTree() {
		for resource, amount := range amounts {
			if amount > most[at][resource] {
				return false
			}
		}
	}
	return true
}

func (s claimSum) claims() []Claim {
	claims := make([]Claim, 0, len(s))
	for at, amounts := range s {
		claims = append(claims, Claim{at.tree, at.node, maps.Clone(amounts)})
	}
	slices.SortFunc(claims, func(a, b Claim) int {
		if a.Tree != b.Tree {
			return strings.Compare(a.Tree, b.Tree)
		}
		return strings.Compare(a.Node, b.Node)
	})
	return claims
}
