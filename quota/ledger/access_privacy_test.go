package ledger_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// hiddenNames are the nodes, ids and users that a reader of node a may not see, as they are in one world and in the
// other. They stand in another order there, so that what happens at one node in one world happens at another one in the
// other.
var hiddenNames = map[string]string{
	"s1": "z2", "s2": "z1", "s1/x": "z2/x", "h0": "k3", "h1": "k2", "h2": "k1", "h3": "k0", "user": "resu",
}

// privateTree has node a, which the reader sees, and two nodes that it does not see.
func privateTree(world int, policy string, reader access.Binding) []quota.TreeSpec {
	hidden := func(name string) string { return inWorld(world, name) }
	everything := bind("node-admin", "other")
	holds := bind("operator", "other")
	holds.MaxPriority, holds.HoldAs = 9, access.Holders{Any: true}
	both := access.CanonicalBindings([]access.Binding{everything, holds})
	nodes := []quota.NodeSpec{
		{Policy: policy, Limits: cores(60), Bindings: both, Thresholds: quota.Thresholds{Percents: []int{50, 90}}},
		{Path: "a", Limits: cores(20), Bindings: access.CanonicalBindings([]access.Binding{reader, bind("holder", "hans")})},
		{Path: "a/b", Limits: cores(10)},
		{Path: hidden("s1"), Limits: cores(20)},
		{Path: hidden("s1") + "/x", Limits: cores(10)},
		{Path: hidden("s2"), Limits: cores(20)},
	}
	slices.SortFunc(nodes, func(a, b quota.NodeSpec) int { return strings.Compare(a.Path, b.Path) })
	return []quota.TreeSpec{{Name: "t", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}}, Nodes: nodes}}
}

func inWorld(world int, name string) string {
	if world == 0 {
		return name
	}
	return hiddenNames[name]
}

// privateCommand draws a command: of hans at a, which is the same in both worlds, or of others at hidden nodes.
func privateCommand(t *rapid.T) (account string, in func(world int) quota.Command) {
	id := rapid.IntRange(0, 3).Draw(t, "id")
	amount := quota.Amount(rapid.IntRange(1, 15).Draw(t, "amount"))
	kind := rapid.IntRange(0, 4).Draw(t, "kind")
	mode := rapid.SampledFrom([]quota.Mode{quota.Hold, quota.Wait, quota.Reserve}).Draw(t, "mode")
	priority := int64(rapid.IntRange(0, 2).Draw(t, "priority"))
	account = rapid.SampledFrom([]string{"hans", "other"}).Draw(t, "account")
	node := rapid.SampledFrom([]string{"a", "a/b"}).Draw(t, "node")
	name := fmt.Sprintf("v%d", id)
	if account == "other" {
		node = rapid.SampledFrom([]string{"s1", "s1/x", "s2"}).Draw(t, "hidden node")
		name = fmt.Sprintf("h%d", id)
		priority += 3
	}
	return account, func(world int) quota.Command {
		id, node, user := name, node, ""
		if account == "other" {
			id, node, user = inWorld(world, id), inWorld(world, node), inWorld(world, "user")
		}
		switch kind {
		case 0:
			return quota.Release{ID: id}
		case 1:
			return quota.Cancel{ID: id}
		case 2:
			return quota.SetLimits{Tree: "t", Node: node, Limits: cores(amount * 2)}
		}
		c := quota.Allocate{
			ID: id, Mode: mode, Principal: quota.Principal{User: user},
			Claims: []quota.Claim{{
				Tree: "t", Node: node, Amounts: quota.Vector{{Resource: "cores", Amount: amount}},
			}},
		}
		if account == "other" {
			c.Claims[0].Priority = priority
		}
		switch mode {
		case quota.Reserve:
			c.ReserveFor = 60_000
		case quota.Wait:
			c.WaitFor = 60_000
		case quota.Hold, quota.Force:
		}
		return c
	}
}

// TestAReaderLearnsNothing: two ledgers that differ only in what a caller may not see answer it with the same bytes.
func TestAReaderLearnsNothing(t *testing.T) {
	happened := 0 // of what is hidden
	defer func() {
		if happened < 5 {
			t.Errorf("only %d hidden commands were carried out", happened)
		}
	}()
	rapid.Check(t, func(t *rapid.T) {
		for range verify.Scale(1, 20) {
			happened += comparePair(t)
		}
	})
}

// comparePair compares two ledgers after each of some commands, and returns how many were hidden and carried out.
func comparePair(t *rapid.T) (happened int) {
	role := rapid.SampledFrom([]string{
		"viewer", "holder", "broker", "operator", "limit-admin", "node-admin", "auditor",
	}).Draw(t, "role")
	policy := rapid.SampledFrom([]string{
		"open", "capped", "strict", "nested", "cohort", "borrowing",
	}).Draw(t, "policy")
	var worlds [2]*guarded
	for w := range worlds {
		worlds[w] = newGuarded(t, privateTree(w, policy, bind(role, "reader")), "reader", "hans", "other")
	}
	compareAnswers(t, worlds)
	for range rapid.IntRange(1, 20).Draw(t, "commands") {
		account, in := privateCommand(t)
		for w := range worlds {
			if out := worlds[w].apply(account, in(w)); out.Refused == nil && account == "other" {
				happened++
			}
		}
		compareAnswers(t, worlds)
	}
	return happened
}

func compareAnswers(t *rapid.T, worlds [2]*guarded) {
	var said [2]map[string]string
	for w := range worlds {
		said[w] = answersTo(t, worlds[w].ledger, callerOf("reader"))
	}
	for question, answer := range said[0] {
		if said[1][question] != answer {
			t.Fatalf("%s is answered\n%s\nand\n%s", question, answer, said[1][question])
		}
	}
}

// answersTo asks everything that can be asked, also by the names that are hidden in one of the worlds.
func answersTo(t *rapid.T, l *ledger.Ledger, caller *access.Caller) map[string]string {
	answers := map[string]string{}
	note := func(question string, answer ...any) {
		data, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(question, err)
		}
		answers[question] = string(data)
	}
	r, refused := l.Reader().ReaderOf(caller)
	s, _ := l.Sandbox().ReaderOf(caller)
	if refused != nil {
		t.Fatal(refused)
	}
	note("trees", r.TreesWithRequests())
	note("configuration", r.Configuration(), r.Policies(), r.Access())
	note("revisions", r.Revisions(0, 100))
	for _, revision := range l.Reader().Revisions(0, 100) {
		shown, seen := r.ShownRevision(revision, "t", "")
		note(fmt.Sprint("watched ", revision.Number), shown.Changes, shown.ChangeCount, seen)
	}
	note("events", r.Events(quota.EventFilter{}, 100))
	note("newest events", r.Events(quota.EventFilter{NewestFirst: true}, 100))
	note("filtered", r.FiltersHolders(), r.FiltersTrees(), r.FiltersRevisions())
	allocations, err := r.Allocations(quota.AllocationFilter{}, 0, 100)
	note("allocations", allocations, refusalText(err))
	waiting, err := s.WaitingWithBlockers(quota.QueueFilter{}, nil, 100)
	note("waiting", waiting, refusalText(err))
	waitingClaims, _ := r.WaitingClaims(nil, 100)
	heldClaims, err := r.HeldClaims("t", false, "", 100)
	note("claims", waitingClaims, heldClaims, refusalText(err), r.SchedulesToExtend())
	nodes, ids := []string{"", "a", "a/b", "a/c", "none"}, []string{"v0", "v1", "v2", "v3", "none"}
	for name, other := range hiddenNames {
		nodes, ids = append(nodes, name, other), append(ids, name, other)
	}
	for _, node := range nodes {
		usage, err := r.Usage(quota.UsageQuery{Tree: "t", Node: node, Subtree: true, CountWaiting: true, Max: 100})
		note("usage "+node, usage, refusalText(err))
		if err == nil {
			note("usage filtered "+node, r.FiltersUsage("t", node))
		}
		note("amounts "+node, r.HeldAmounts("t", node, 10))
		note("revisions of "+node, r.RevisionsOf("t", node, 0, 100))
		dry := s.DryRun(quota.SetLimits{Tree: "t", Node: node, Limits: cores(5)})
		note("limits "+node, dry.Configuration, refusalText(dry.Refused))
		out := s.Explain(claimAt("probe", node, 12))
		note("explain "+node, out.Decision, out.Levels, out.LevelsCut, refusalText(out.Refused))
	}
	raised := whatIf(t, l, caller, quota.SetLimits{Tree: "t", Node: "a/b", Limits: cores(30)})
	note("what if", raised.Configuration, refusalText(raised.Refused))
	for _, id := range ids {
		info, err := r.Allocation(id)
		note("allocation "+id, info, refusalText(err))
		decision, allocation, _, err := s.ExplainID(id)
		note("explain id "+id, decision, allocation, refusalText(err))
		note("denial "+id, ledger.DenialHolders(r, id))
		out := s.DryRun(quota.Release{ID: id})
		note("release "+id, refusalText(out.Refused))
	}
	return answers
}

func claimAt(id, node string, n quota.Amount) quota.Allocate {
	c := claimCores(id, node, n)
	c.Claims[0].Tree = "t"
	return c
}

func refusalText(err *quota.Error) string {
	if err == nil {
		return ""
	}
	text := fmt.Sprintf("%v %s: %s", err.Kind, err.Field, err.Text)
	if err.Kind == quota.Forbidden { // then servers show where a verb is missing
		text += fmt.Sprintf(" (%v at %s)", err.Verb, err.Place)
	}
	return text
}

// TestItemsOfAllTreesNeedARightOnTheCluster: who may read those of some trees only is told which right is missing, and
// not that a tree without a name does not exist.
func TestItemsOfAllTreesNeedARightOnTheCluster(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, cernTree(), "anna")
	_, refused := g.readerOf("anna").Items(quota.ItemFilter{}, nil, 1, false)
	if refused == nil || refused.Kind != quota.Forbidden || refused.Verb != access.UsageRead {
		t.Errorf("an administrator of one node gets %v", refused)
	}
}
