package ledger_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// yunikornScenario is described in testdata/yunikorn/README.md.
type yunikornScenario struct {
	Name, Note string
	Config     []string
	Steps      []yunikornStep
	Expect     []yunikornExpectation
}

type yunikornStep struct {
	Op, Queue, App, User, Alloc string
	Groups                      []string
	Resources                   map[string]json.Number
	Force                       bool
	Config                      []string
}

type yunikornExpectation struct {
	Step             int
	Verdict          string
	Who, Queue, Type string
	Used             json.Number
	Anomaly          string
}

// ours are the answers of the ledger where the recorded ones are faults of the real code: the lines that differ, with
// the reason. An anomaly is never expected: what it would be is checked by Ledger.Check after every step.
var ours = map[string]map[string]string{
	"c01-limit-lost":         {"2 verdict": "denied"},  // the limit on the leaf stays when the one on the root goes
	"c02-limit-lost-on-move": {"2 verdict": "denied"},  // the limit is where the new configuration has it
	"c03-wildcard-stays":     {"3 verdict": "allowed"}, // a removed wildcard limits no user
	// Red really holds 80 of 100, so that 90 more do not fit, and what was not granted is not paid back.
	"c04-group-usage-wiped": {"4 verdict": "denied", "4 group red root.b memory": "60"},
	// The application stays in red for its life; blue holds nothing, and 150 of 100 do not fit.
	"c05-group-changes-and-goes-negative": {"3 group blue root memory": "0", "5 verdict": "denied"},
	// A decrease names what it ends, so a wrong queue ends nothing.
	"c07-upper-case-queue":          {"1 verdict": "denied"},  // names are folded once, those of limits too
	"c09-largest-application-count": {"0 verdict": "refused"}, // a count is at most MaxAmount
	// The largest amount is refused where it could not be counted.
	"c10-usage-stops-at-the-top": {"0 verdict": "refused"},
	"c12-limit-lost-group":       {"2 verdict": "denied"}, // as c01
}

// TestYuniKorn plays the recorded sequences.
func TestYuniKorn(t *testing.T) {
	files, err := filepath.Glob("testdata/yunikorn/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var s yunikornScenario
			if err := json.Unmarshal(data, &s); err != nil {
				t.Fatal(err)
			}
			p := &yunikornPlayer{t: t, ledger: ledger.New(quota.DefaultBounds()), scenario: s, got: map[string]string{}}
			p.play()
		})
	}
}

type yunikornPlayer struct {
	t        *testing.T
	ledger   *ledger.Ledger
	scenario yunikornScenario
	got      map[string]string
}

func (p *yunikornPlayer) play() {
	p.got["0 verdict"] = p.configure(p.scenario.Config)
	if p.got["0 verdict"] == "refused" {
		p.compare()
		return
	}
	for i, s := range p.scenario.Steps {
		verdict := ""
		switch s.Op {
		case "reload":
			verdict = p.configure(s.Config)
		case "increase":
			verdict = p.increase(i, s)
		case "decrease":
			verdict = p.decrease(s)
		default:
			p.t.Fatalf("what is %q?", s.Op)
		}
		if err := p.ledger.Check(); err != nil {
			p.t.Fatalf("after step %d: %v", i+1, err)
		}
		p.got[fmt.Sprintf("%d verdict", i+1)] = verdict
		for _, e := range p.scenario.Expect {
			if e.Step == i+1 && e.Who != "" {
				p.got[e.subject()] = p.used(e)
			}
		}
	}
	p.compare()
}

// compare compares what was recorded, with our corrections, with what the ledger said.
func (p *yunikornPlayer) compare() {
	want, have := map[string]string{}, map[string]string{}
	for _, e := range p.scenario.Expect {
		switch {
		case e.Verdict != "":
			want[e.subject()] = e.Verdict
		case e.Who != "":
			want[e.subject()] = e.Used.String()
		}
	}
	for subject, answer := range ours[p.scenario.Name] {
		want[subject] = answer
		if answer == "refused" { // then nothing else was asked
			want = map[string]string{subject: answer}
			break
		}
	}
	for subject := range want {
		have[subject] = p.got[subject]
	}
	if diff := cmp.Diff(want, have); diff != "" {
		p.t.Errorf("%s (-recorded +ledger):\n%s", p.scenario.Note, diff)
	}
}

func (e yunikornExpectation) subject() string {
	if e.Who == "" {
		return fmt.Sprintf("%d verdict", e.Step)
	}
	return fmt.Sprintf("%d %s %s %s", e.Step, e.Who, e.Queue, e.Type)
}

func (p *yunikornPlayer) configure(config []string) string {
	spec, err := yunikornTree(strings.Join(config, "\n"))
	if err != nil {
		return "refused"
	}
	out := p.ledger.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{spec}})
	if out.Refused != nil {
		p.t.Log(out.Refused)
		return "refused"
	}
	return "applied"
}

// increase allocates. One that takes away is the resize of what is held.
func (p *yunikornPlayer) increase(i int, s yunikornStep) string {
	c := quota.Allocate{
		ID: "alloc-" + s.Alloc, Principal: quota.Principal{User: s.User, Groups: s.Groups, Application: s.App},
		Claims: []quota.Claim{{Tree: "yunikorn", Node: nodeOfQueue(s.Queue)}},
	}
	if s.Alloc == "" {
		c.ID = fmt.Sprintf("step-%d", i)
	}
	if s.Force {
		c.Mode = quota.Force
	}
	for name, n := range s.Resources {
		amount, err := n.Int64()
		if err != nil {
			p.t.Fatal(err)
		}
		if amount < 0 {
			return p.shrink(s, name, quota.Amount(-amount))
		}
		c.Claims[0].Amounts = append(c.Claims[0].Amounts, quota.Component{Resource: name, Amount: quota.Amount(amount)})
	}
	slices.SortFunc(c.Claims[0].Amounts, byResource)
	out := p.ledger.Apply(quota.Stamp{}, c)
	switch {
	case out.Refused != nil:
		p.t.Log(out.Refused)
		return "refused"
	case out.Decision.Granted:
		return "allowed"
	}
	p.t.Log(out.Decision.Explain())
	return "denied"
}

// shrink resizes the allocation of an application at a queue that holds more than is taken away of a resource.
func (p *yunikornPlayer) shrink(s yunikornStep, resource string, less quota.Amount) string {
	page, _ := p.ledger.Reader().Allocations(quota.AllocationFilter{Tree: "yunikorn", Node: nodeOfQueue(s.Queue)}, 0, 100)
	for _, a := range page.Allocations {
		held := a.Claims[0].Amounts[0]
		if a.Principal.User != s.User || a.Principal.Application != s.App || held.Amount <= less {
			continue
		}
		out := p.ledger.Apply(quota.Stamp{}, quota.Resize{ID: a.ID, Claims: []quota.ClaimChange{{
			Tree: "yunikorn", Node: nodeOfQueue(s.Queue),
			Amounts: quota.Vector{{Resource: resource, Amount: held.Amount - less}},
		}}})
		if out.Refused != nil || !out.Decision.Granted {
			p.t.Fatalf("a resize that only lowers amounts was not granted: %+v", out)
		}
		return "allowed"
	}
	p.t.Fatalf("no allocation holds more than %d %s", less, resource)
	return ""
}

func (p *yunikornPlayer) decrease(s yunikornStep) string {
	if out := p.ledger.Apply(quota.Stamp{}, quota.Release{ID: "alloc-" + s.Alloc}); out.Refused != nil {
		return "skipped" // nothing of that name is held
	}
	return "applied"
}

func (p *yunikornPlayer) used(e yunikornExpectation) string {
	word, name, _ := strings.Cut(e.Who, " ")
	kind := quota.AUser
	if word == "group" {
		kind = quota.AGroup
	}
	list, _, refused := p.ledger.Reader().Principals("yunikorn", kind, name, "", 1)
	if refused != nil {
		p.t.Fatal(refused)
	}
	for _, u := range list {
		for _, n := range u.Nodes {
			for _, c := range n.Used {
				if n.Path == nodeOfQueue(e.Queue) && c.Resource == e.Type {
					return fmt.Sprint(c.Amount)
				}
			}
		}
	}
	return "0"
}

func nodeOfQueue(queue string) string {
	_, rest, _ := strings.Cut(strings.ToLower(queue), ".")
	return strings.ReplaceAll(rest, ".", "/")
}

type yunikornQueue struct {
	Name   string
	Limits []yunikornLimit
	Queues []yunikornQueue
}

type yunikornLimit struct {
	Limit           string
	Users, Groups   []string
	MaxResources    map[string]uint64 `yaml:"maxresources"`
	MaxApplications uint64            `yaml:"maxapplications"`
}

// yunikornResources are those of the scenarios; each is counted.
var yunikornResources = []string{"gpu", "memory", "tape", "vcore"}

func yunikornTree(config string) (quota.TreeSpec, error) {
	var file struct{ Partitions []yunikornQueue }
	if err := yaml.Unmarshal([]byte(config), &file); err != nil {
		return quota.TreeSpec{}, err
	}
	spec := quota.TreeSpec{Name: "yunikorn"}
	for _, r := range yunikornResources {
		spec.Resources = append(spec.Resources, quota.Resource{Name: r, Unit: quota.Count})
	}
	var add func(q yunikornQueue, path string)
	add = func(q yunikornQueue, path string) {
		n := quota.NodeSpec{Path: path}
		for _, l := range q.Limits {
			n.Principals = append(n.Principals, l.principal())
		}
		spec.Nodes = append(spec.Nodes, n)
		for _, child := range q.Queues {
			add(child, strings.TrimPrefix(path+"/"+strings.ToLower(child.Name), "/"))
		}
	}
	add(file.Partitions[0].Queues[0], "")
	return spec, nil
}

func (l yunikornLimit) principal() quota.PrincipalLimit {
	p := quota.PrincipalLimit{
		Users: l.Users, Groups: l.Groups, Description: l.Limit,
	}
	if l.MaxApplications > 0 {
		p.Applications = quota.AtMost(quota.Amount(l.MaxApplications))
	}
	for name, most := range l.MaxResources {
		p.Limits = append(p.Limits, quota.Component{Resource: name, Amount: quota.Amount(most)})
	}
	slices.SortFunc(p.Limits, byResource)
	return p
}
