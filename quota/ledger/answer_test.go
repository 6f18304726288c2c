package ledger_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/policy"
)

func (p *player) outcome(c quota.Command, out ledger.Outcome) {
	repeated := ""
	if out.Repeated {
		repeated = " (repeated)"
	}
	switch {
	case out.Refused != nil:
		p.say("refused %s: %s", out.Refused.Kind, out.Refused.Error())
	case out.Configuration != nil:
		p.configuration(*out.Configuration, repeated)
	case out.Decision != nil && (out.Allocation == nil || !out.Decision.Granted):
		p.say("%s%s", out.Decision.Explain(), repeated)
		p.wouldPlace(*out.Decision)
	case out.Decision != nil:
		p.say("%s, fence %d%s", out.Decision.Explain(), out.Allocation.Fence(), repeated)
		p.placed(out.Allocation.Info())
		p.ranges(out.Allocation.Info())
		p.holds(out.Allocation.Info())
		p.preempted(*out.Decision)
		for _, part := range out.Parts {
			p.say("  %s, fence %d", part.ID(), part.Fence())
		}
	case out.Allocation != nil:
		p.say("%s%s", stateWords[out.Allocation.Info().State]+leaseWords(out.Allocation.Info()), repeated)
		p.holds(out.Allocation.Info())
		if len(out.Restored) > 0 {
			p.say("  held again: %s", strings.Join(out.Restored, " "))
		}
	case out.Items != nil:
		p.itemLines(out.Items, repeated)
	case isCivilOffset(c):
		p.say("civil time is %s", p.ledger.Reader().CivilTime())
	case out.ScheduledLimit != nil:
		p.say("%s%s", describeScheduled(*out.ScheduledLimit), repeated)
	case out.Expired > 0:
		p.say("%d expired", out.Expired)
	default:
		p.say("%T did nothing at all", c)
	}
}

// alternativeWords is empty for a request without alternatives.
func alternativeWords(number int) string {
	if number == 0 {
		return ""
	}
	return fmt.Sprintf(", alternative %d", number)
}

// placed says where claims count, if it is not where they were asked for.
func (p *player) placed(a quota.AllocationInfo) {
	for _, c := range a.Claims {
		if c.Placed != c.Node {
			p.say("  %s is counted at %s", quota.Place(c.Tree, c.Node), quota.Place(c.Tree, c.Placed))
		}
	}
}

// ranges says what is held of ranges.
func (p *player) ranges(a quota.AllocationInfo) {
	for _, c := range a.Claims {
		for _, r := range c.Ranges {
			held := quota.Amount(0)
			for _, component := range c.Amounts {
				if component.Resource == r.Resource {
					held = component.Amount
				}
			}
			p.say("  %s has %d %s of %d..%d/%d", quota.Place(c.Tree, c.Node), held, r.Resource, r.Least, r.Most, r.Step)
		}
	}
}

// wouldPlace is the same for a dry run.
func (p *player) wouldPlace(d quota.Decision) {
	p.placed(quota.AllocationInfo{Claims: d.Placements})
	p.ranges(quota.AllocationInfo{Claims: d.Placements})
	p.preempted(d)
}

func (p *player) preempted(d quota.Decision) {
	for _, v := range d.Preempted {
		if !d.Granted {
			p.say("  %s at %s has to give way", v.ID, quota.Place(v.Tree, v.Node))
			continue
		}
		p.say("  preempted %s at %s", v.ID, quota.Place(v.Tree, v.Node))
	}
}

var stateWords = map[quota.State]string{
	quota.Held: "held", quota.Reserved: "reserved", quota.Released: "released", quota.Expired: "expired",
	quota.WasPreempted: "preempted", quota.Cancelled: "cancelled",
	quota.Waiting: "waiting", quota.TimedOut: "timed out", quota.Abandoned: "abandoned",
}

func (p *player) configuration(c quota.Configuration, repeated string) {
	p.say("revision %d%s", c.Revision, repeated)
	p.changes(c.Changes)
	if len(c.Changes) == 0 {
		p.say("  nothing changed")
	}
	for _, o := range c.Over {
		kind := ""
		if o.IsAdvisory {
			kind = "advisory "
		}
		p.say("  over its %slimit: %s holds %d of %d %s", kind, whoseLimit(o), o.Used, o.Limit,
			cmp.Or(o.Resource, "applications"))
	}
	if c.Effects != nil {
		p.effects(*c.Effects)
	}
}

func whoseLimit(o quota.Overuse) string {
	if o.Holder.Kind == quota.TheNode {
		return quota.Place(o.Tree, o.Node)
	}
	return o.Holder.String() + "at " + quota.Place(o.Tree, o.Node)
}

func (p *player) effects(e quota.Effects) {
	for _, r := range e.Rooms {
		p.say("  room at %s for %s: %s to %s", quota.Place(r.Tree, r.Node), r.Resource,
			roomWords(r.Before, r.BeforeBounded), roomWords(r.After, r.AfterBounded))
	}
	for _, id := range e.Admitted {
		p.say("  would admit %s", id)
	}
	if e.Queue == nil {
		return
	}
	p.affected("would grant", e.Queue.Granted)
	p.affected("would preempt", e.Queue.Preempted)
	p.affected("would revoke", e.Queue.Revoked)
	p.affected("would cancel", e.Queue.Cancelled)
	p.affected("would set aside", e.Queue.SetAside)
}

func (p *player) affected(what string, list quota.Affected) {
	for _, r := range list.List {
		if r.By != "" {
			r.By = " for " + r.By
		}
		p.say("  %s %s%s", what, r.ID, r.By)
	}
}

func roomWords(room quota.Amount, bounded bool) string {
	if !bounded {
		return "any"
	}
	return fmt.Sprint(room)
}

func (p *player) changes(changes []quota.Change) {
	for _, c := range changes {
		what := quota.Place(c.Tree, c.Node) + " " + c.Field
		switch c.Kind {
		case quota.Added:
			p.say("  added %s: %s", what, c.After)
		case quota.Removed:
			p.say("  removed %s: %s", what, c.Before)
		case quota.Changed:
			p.say("  changed %s: %s to %s", what, c.Before, c.After)
		}
	}
}

func (p *player) read(word string, args []string) error {
	v := p.ledger.Sandbox()
	switch word {
	case "usage":
		p.usage(v, args[0])
	case "users":
		p.principals(v, quota.AUser, args)
	case "groups":
		p.principals(v, quota.AGroup, args)
	case "tree":
		p.tree(v, args[0])
	case "policies":
		p.policies(v, args)
	case "trees":
		for _, t := range v.Trees() {
			p.say("%s: policy %s, %d resources, %d nodes, %d claims held", t.Name, t.Policy, len(t.Resources),
				t.Nodes, t.Claims)
		}
	case "holds":
		tree, node := nodeAt(strings.Join(args, ""))
		for _, h := range v.Holds(tree, node) {
			p.say("%s", formatHold(h))
		}
	case "queue":
		p.queue(v, args)
	case "list":
		p.list(v, args)
	case "get":
		p.get(v, args[0])
	case "why":
		p.why(v, args[0])
	case "history":
		return p.history(v, args)
	case "events":
		return p.events(v, args)
	case "explain":
		return p.explain(v, args)
	case "levels":
		return p.levels(v, args)
	case "items":
		p.items(v, args)
	case "counted":
		p.counted(v, args)
	case "due":
		p.due(v)
	case "scheduled":
		p.sayScheduled(args)
	case "counts":
		c := v.Counts()
		p.say("%d trees, %d nodes, %d held, %d ended%s", c.Trees, c.Nodes, c.Held, c.Ended,
			itemCount(c)+waitingCount(c))
	default:
		return fmt.Errorf("what is %q?", word)
	}
	return nil
}

func (p *player) policies(v ledger.Sandbox, args []string) {
	specs := v.Policies()
	if len(args) > 0 {
		specs = v.PoliciesOf(args[0])
	}
	for _, s := range specs {
		p.say("%s: %s", s.Name, policy.DescribeSpec(s))
	}
}

func (p *player) usage(v ledger.Sandbox, place string) {
	tree, node := nodeAt(place)
	page, refused := v.Usage(quota.UsageQuery{Tree: tree, Node: node, Subtree: true, Max: math.MaxInt})
	if refused != nil {
		p.say("refused %s: %s", refused.Kind, refused.Error())
		return
	}
	table := tabwriter.NewWriter(&p.out, 0, 0, 2, ' ', 0)
	for _, n := range page.Nodes {
		name := quota.Place(tree, n.Path)
		for _, r := range n.Resources {
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", name, r.Resource.Name, standing(r))
			name = ""
		}
		if h := n.Hold; h != nil {
			_, _ = fmt.Fprintf(table, "\ton hold\tat %s\n", quota.Place(h.Tree, h.Node))
		}
		if n.Applications > 0 || n.MaxApplications.HasAmount() {
			_, _ = fmt.Fprintf(table, "\tapplications\t%d of %s\n", n.Applications, countWord(n.MaxApplications))
		}
	}
	_ = table.Flush() // into a strings.Builder
}

func standing(r quota.ResourceUsage) string {
	limit := r.Effective.String()
	if r.Set != r.Effective {
		limit += " (" + r.Set.String() + ")"
	}
	room := "any"
	if r.Bounded {
		room = fmt.Sprint(r.Headroom)
	}
	text := fmt.Sprintf("limit %s\town %d\tsubtree %d\troom %s", limit, r.Own, r.Subtree, room)
	if r.Over > 0 {
		text += fmt.Sprintf("\tover by %d", r.Over)
	}
	return text
}

func countWord(most quota.Limit) string {
	if !most.HasAmount() {
		return "any"
	}
	return most.String()
}

func (p *player) tree(v ledger.Sandbox, name string) {
	spec, refused := v.Tree(name)
	if refused != nil {
		p.say("refused %s: %s", refused.Kind, refused.Error())
		return
	}
	settings := settingWords(spec.TreeSettings)
	if settings != "" {
		p.say("tree%s", settings)
	}
	for _, r := range spec.Resources {
		p.say("resource %s counts %s%s", r.Name, r.Unit, itemWords(r.Items))
	}
	for _, n := range spec.Nodes {
		p.say("%s", quota.Place(name, n.Path)+nodeWords(n))
	}
}

func settingWords(s quota.TreeSettings) string {
	text := ""
	if s.Forest != "" {
		text += " @forest=" + s.Forest
	}
	if s.RequireReason {
		text += " @require-reason"
	}
	if s.RequirePrincipal {
		text += " @require-user"
	}
	return text + leaseSettings(s)
}

func nodeWords(n quota.NodeSpec) string {
	text := ""
	if n.Policy != "" {
		text += " policy=" + n.Policy
	}
	for _, lists := range []struct {
		prefix string
		limits []quota.ResourceLimit
	}{{"", n.Limits}, {"default.", n.Defaults}, {"borrow.", n.Borrow}, {"lend.", n.Lend}} {
		for _, l := range lists.limits {
			text += fmt.Sprintf(" %s%s=%s", lists.prefix, l.Resource, l.Limit)
		}
	}
	if n.Hard {
		text += " @hard"
	}
	if n.Queueing != quota.InheritQueueing {
		text += " @queueing=" + map[quota.Queueing]string{
			quota.Strict:     "strict",
			quota.BestEffort: "best-effort",
		}[n.Queueing]
	}
	if !n.Thresholds.IsZero() {
		text += " @warn=" + strings.ReplaceAll(n.Thresholds.String(), " ", "")
	}
	if n.Applications.HasAmount() {
		text += fmt.Sprintf(" @apps=%d", n.Applications.Amount)
	}
	return text + labelWords(n.Labels)
}

func labelWords(labels []quota.Label) string {
	var text strings.Builder
	for _, l := range labels {
		fmt.Fprintf(&text, " label.%s=%s", l.Key, l.Value)
	}
	return text.String()
}

// list pages by two, so that every scenario tries the pages.
func (p *player) list(v ledger.Sandbox, args []string) {
	f := quota.AllocationFilter{Labels: (&parser{}).node(args).Labels}
	if i := slices.Index(args, "@leases"); i >= 0 {
		f.Leases, args = true, slices.Delete(args, i, i+1)
	}
	if len(args) > len(f.Labels) {
		f.Tree, f.Node = nodeAt(args[0])
	}
	after := uint64(0)
	for {
		page, refused := v.Allocations(f, after, 2)
		if refused != nil {
			p.say("refused %s: %s", refused.Kind, refused.Error())
			return
		}
		for _, a := range page.Allocations {
			p.allocation(a)
		}
		if after = page.Next; after == 0 {
			return
		}
	}
}

func (p *player) get(v ledger.Sandbox, id string) {
	a, refused := v.Allocation(id)
	if refused != nil {
		p.say("refused %s: %s", refused.Kind, refused.Error())
		return
	}
	p.allocation(a)
}

func (p *player) allocation(a quota.AllocationInfo) {
	text := fmt.Sprintf("%s, fence %d%s:", a.ID, a.Fence, alternativeWords(a.Alternative))
	if a.Fence == 0 {
		text = a.ID + ":"
	}
	text += claimWords(a) + labelWords(a.Labels)
	if a.Fence > 0 {
		text += ", granted " + moment(a.GrantedAt, a.GrantedWall)
	}
	if a.Waiting != nil {
		text += waits(a)
	}
	if a.Resize != nil {
		text += ", " + resizeWords(*a.Resize)
	}
	text += p.particulars(a) + leaseWords(a)
	if a.Ended {
		text += ", ended " + moment(a.EndedAt, a.EndedWall)
	}
	p.say("%s", text)
	p.placed(a)
	p.holds(a)
}

func claimWords(a quota.AllocationInfo) string {
	text := ""
	for _, c := range a.Claims {
		text += " " + quota.Place(c.Tree, c.Node)
		for _, component := range c.Amounts {
			text += fmt.Sprintf(" %s=%d", component.Resource, component.Amount)
		}
		text += pickWords(c.Picks)
	}
	return text
}

func (p *player) particulars(a quota.AllocationInfo) string {
	var text string
	if a.Principal.User != "" {
		text += ", for " + a.Principal.User
		if a.Principal.Application != "" {
			text += "/" + a.Principal.Application
		}
	}
	for _, c := range a.Claims {
		if c.Group != "" {
			text += ", group " + c.Group + " in " + c.Tree
		}
	}
	if a.Forced {
		text += ", forced"
	}
	if a.State != quota.Held && a.State != quota.Released && a.State != quota.Waiting {
		text += ", " + stateWords[a.State]
	}
	if a.State == quota.Reserved {
		text += " until " + (time.Duration(a.ReservedUntil) * time.Millisecond).String()
	}
	if a.PreemptedBy != "" {
		text += " by " + a.PreemptedBy
	}
	return text
}

// moment is ledger time since the beginning, which the wall clock of the scenarios agrees with.
func moment(at quota.Instant, wall int64) string {
	if int64(at)+wallBase != wall {
		return fmt.Sprintf("at %d but wall clock %d", at, wall)
	}
	return "at " + (time.Duration(at) * time.Millisecond).String()
}
