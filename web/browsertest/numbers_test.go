package browsertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// shownUsage is what the overview shows: for "TREE:node: resource", the text beside the bar.
const shownUsage = `Object.fromEntries([...document.querySelectorAll("main [data-usage]")].map((u) => [
	u.dataset.usage, u.querySelector(".usage-used").innerText]))`

// amounts are read with the command line.
type amounts struct {
	Resource, Subtree, Over string

	Effective struct {
		Amount, Advisory *string
		Unlimited        bool
	}
}

func (a amounts) text() string {
	switch limit := a.Effective; {
	case limit.Advisory != nil:
		return a.Subtree + " of advisory:" + *limit.Advisory
	case limit.Amount == nil:
		return a.Subtree + ", no limit"
	case a.Over == "0" && number(a.Subtree) > number(*limit.Amount):
		return a.Subtree + ", share " + *limit.Amount
	default:
		return a.Subtree + " of " + *limit.Amount
	}
}

func number(text string) int {
	n, _ := strconv.Atoi(text) // the program wrote it
	return n
}

// usageOf reads the usage of trees with the command line.
func usageOf(t *testing.T, s *server, trees ...string) map[string]amounts {
	t.Helper()
	all := map[string]amounts{}
	for _, tree := range trees {
		var usage struct {
			Nodes []struct {
				Node      string
				Resources []amounts
			}
		}
		if err := json.Unmarshal([]byte(s.Run(t, "usage", tree, "-o", "json")), &usage); err != nil {
			t.Fatal(err)
		}
		for _, n := range usage.Nodes {
			name := tree
			if n.Node != "" {
				name += ":" + n.Node
			}
			for _, a := range n.Resources {
				all[name+": "+a.Resource] = a
			}
		}
	}
	return all
}

type script struct {
	random *rand.Rand
	count  int
	held   []string
}

var scriptNodes = strings.Fields("cern:atlas/operations/web cern:atlas/physics/simulation cern:atlas " +
	"ServiceTree:Srvc-X ContextTree:Org-A/Context-1 ContextTree:Org-B/Context-3 labs:atlas labs:cms")

// next is the next command. Many are refused, and that is a part of the script.
func (s *script) next() []string {
	s.count++
	node := scriptNodes[s.random.IntN(len(scriptNodes))]
	resource := "cores"
	if strings.Contains(node, "Srvc") || strings.Contains(node, "Context") {
		resource = "cpu"
	}
	amount := fmt.Sprintf("%s=%d", resource, 1+s.random.IntN(12))
	switch kind := s.random.IntN(10); {
	case kind < 5 || len(s.held) == 0:
		id := fmt.Sprint("random-", s.count)
		s.held = append(s.held, id)
		return []string{"allocate", "--id", id, "--at", node, "--amount", amount}
	case kind < 8:
		at := s.random.IntN(len(s.held))
		id := s.held[at]
		s.held = slices.Delete(s.held, at, at+1)
		return []string{"release", id}
	case kind < 9:
		return []string{"limit", "set", node, amount}
	default:
		return []string{"allocation", "resize", s.held[s.random.IntN(len(s.held))], "--amount", amount}
	}
}

// TestNumbersEqualThoseOfTheCommandLine compares what the page shows with what the command line prints, while a random
// script of commands changes it.
func TestNumbersEqualThoseOfTheCommandLine(t *testing.T) {
	count, every, seed := 20, 5, uint64(1)
	if exhaustive() {
		count, every, seed = 1000, 10, rand.Uint64()
	}
	t.Logf("seed %d", seed)
	s := startServers(t, 1)[0]
	for _, example := range []string{"cern", "borrowing", "advisory"} {
		s.Run(t, "apply", "-f", root+"/examples/"+example+".yaml")
	}
	b := openTab(t, s.URL()+"/ui/")
	random := script{random: rand.New(rand.NewPCG(seed, 0))}
	for done := 1; done <= count; done++ {
		_, _ = s.Try(t, random.next()...) // refused commands are a part of it
		if done%every == 0 {
			b.awaitEqualNumbers(t, s)
		}
	}
}

// awaitEqualNumbers waits until all numbers of the page are those of the command line.
func (b *tab) awaitEqualNumbers(t *testing.T, s *server) {
	t.Helper()
	want := usageOf(t, s, "cern", "ContextTree", "ServiceTree", "labs")
	var differences []string
	defer func() {
		if t.Failed() {
			t.Logf("they differ in\n%s", strings.Join(differences, "\n"))
		}
	}()
	await(t, "the numbers are equal", func() bool {
		shown := eval[map[string]string](b, shownUsage)
		if len(shown) == 0 {
			return false
		}
		differences = nil
		for _, name := range slices.Sorted(maps.Keys(shown)) {
			if text := want[name].text(); text != shown[name] {
				differences = append(differences, fmt.Sprintf("%s: %s, not %s", name, shown[name], text))
			}
		}
		return len(differences) == 0
	})
}
