package ledger_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/quota"
)

// The words of a scenario. AT is tree or tree:path, AMOUNTS is resource=number, resource=max, in requests
// resource=LEAST..MOST/STEP or, for items, resource=NUMBER:[STATE][>HELDSTATE] or
// resource=NAME+NAME…:[STATE][>HELDSTATE]. LIMITS also knows resource=unlimited, resource=unset and
// resource=advisory:number; max is the largest amount there is.
//
//	apply [META] [@prune] [@remove=POLICY,…]     make trees and policies so, with indented lines:
//	  policy NAME base=NAME [SWITCH=VALUE]…
//	  tree NAME resources=NAME[:UNIT],… [policy=NAME] [LIMITS] [label.KEY=VALUE]… [@forest=NAME]
//	      [@require-reason] [LEASES] [NODE…]
//	  node PATH [policy=NAME] [LIMITS] [label.KEY=VALUE]… [NODE…]
//	  items RESOURCE NAME… | items RESOURCE MIN..MAX, then [@lifespan=DURATION] [@new=STATE] [@released=STATE]
//	      [@expired=STATE]
//	    [@ttl=DURATION] [@queueing=WORD] [FROM>TO=DURATION]…       on one line, of the tree above
//	  principals [users=NAME,…] [groups=NAME,…] [AMOUNTS] [@apps=NUMBER] [@text=TEXT]     of the tree or node above
//	  moved FROM TO                    in the tree above
//	set AT LIMITS [META]               change limits of one node
//	move TREE FROM TO [META]
//	hold AT [@deny] [@until=DURATION] [META] | drain AT [@grace=DURATION] [@deny] [@until=DURATION] [META]
//	resume AT [META] | holds [AT]
//	rollback REVISION [META]
//	delete TREE [META]
//	allocate ID [AT AMOUNTS… [STANDING]]… [| AT …]… [label.KEY=VALUE]… [@user=NAME] [@groups=NAME,…] [@app=NAME]
//	    [@reserve=DURATION] [@force] [@ttl=DURATION] [data.KEY=VALUE]…
//	    [@declared=DURATION] [@wait[=DURATION]] [@keep=DURATION] [@rank=NUMBER]    rank orders the queue
//	renew ID [@fence=NUMBER] [@ttl=DURATION] [data.KEY=VALUE]…   with indented lines: TREE/RESOURCE/ITEM
//	    [@state=STATE] [data.KEY=VALUE]…
//	update                             change items, with the same lines
//	reset TREE RESOURCE STATE TO [@idle=DURATION]
//	release ID [TREE/RESOURCE/ITEM]… [@state=STATE] [@fence=NUMBER]
//	confirm ID [@fence=NUMBER] | cancel ID [@fence=NUMBER] | expire NUMBER
//	resize ID [AT AMOUNTS…]… [CHANGE] [@wait=DURATION]
//	transfer ID [AT PATH]… [CHANGE]    the claim at AT goes to PATH
//	split ID [CHANGE]                  with indented lines: part ID, then AT PATH AMOUNTS for each claim
//	civil DURATION                     make civil time so much more than ledger time
//	schedule ID AT ADJUSTMENTS WINDOWS [@every=RULE] [@ends=DURATION] [META]
//	    ADJUSTMENTS are resource=NUMBER, resource=+NUMBER, resource=-NUMBER or resource<NUMBER for a cap
//	extend ID WINDOWS                  each of WINDOWS is FROM..UNTIL, durations since 1970
//	unschedule ID [META]
//	scheduled [AT]                     the scheduled limits
//	dry COMMAND                        say what a command would do
//	tick DURATION                      let ledger time pass
//	freeze                             go on with a ledger loaded from an image of this one
//	bounds NAME=NUMBER…                begin anew with other bounds
//	users TREE [NAME] | groups TREE [NAME]
//	queue [AT] [resource=NAME]         who waits, where, and why
//	policies [TREE]                    those that are defined, or those of them that a tree uses
//	usage AT | tree NAME | trees | list [AT] [@leases] [label.KEY=VALUE]… | get ID | history [before=REVISION]
//	    [max=NUMBER] | counts
//	why ID                             why it was ended or revoked, and who made room for it
//	events [after=NUMBER] [max=NUMBER] [id=ID] [at=AT]
//	    [kind=denied|preempted|expired|restored|revoked|dropped|crossed|cleared|drained|over]
//	explain ID                         how it was decided, or with claims as for allocate: how it would be
//	items TREE[/RESOURCE] [state=STATE] [name=NAME] [owner=USER] | counted [TREE[/RESOURCE]]
//	due                                when the next reservation lapses
//
// LEASES are @lease-default=DURATION @lease-max=DURATION @lease-grace=DURATION @overtake=DURATION.
//
// CHANGE is @fence=NUMBER @generation=NUMBER.
//
// META is @by=ACTOR @for=REASON @request=ID @print=FINGERPRINT @expect=REVISION. NODE is @hard @apps=NUMBER
// @queueing=WORD @warn=PERCENT,…[/MARGIN]|none default.RESOURCE=LIMIT borrow.RESOURCE=LIMIT
// lend.RESOURCE=LIMIT. STANDING is @priority=NUMBER @type=NUMBER @unpreemptable.
func parseCommand(words, body []string) (quota.Command, error) {
	p := &parser{}
	switch args := words[1:]; words[0] {
	case "apply":
		return p.apply(args, body), p.err
	case "set":
		tree, node := nodeAt(args[0])
		n := p.node(args[1:])
		return quota.SetLimits{Meta: p.meta(args), Tree: tree, Node: node, Limits: n.Limits}, p.err
	case "move":
		return quota.MoveNode{Meta: p.meta(args), Tree: args[0], From: args[1], To: args[2]}, p.err
	case "hold", "drain":
		return p.hold(words[0], args), p.err
	case "resume":
		tree, node := nodeAt(args[0])
		return quota.UncordonNode{Meta: p.meta(args), Tree: tree, Node: node}, p.err
	case "rollback":
		return quota.RollBack{Meta: p.meta(args), Revision: uint64(p.amount(args[0]))}, p.err
	case "delete":
		return quota.DeleteTree{Meta: p.meta(args), Tree: args[0]}, p.err
	case "allocate":
		return p.allocate(args), p.err
	case "release":
		return p.release(args), p.err
	case "update":
		return quota.UpdateItems{Updates: p.itemUpdates(body)}, p.err
	case "reset":
		return p.reset(args), p.err
	case "renew":
		return p.renew(args, body), p.err
	case "confirm":
		return quota.Confirm{ID: args[0], Fence: p.fenceOf(args)}, p.err
	case "cancel":
		return quota.Cancel{ID: args[0], Fence: p.fenceOf(args)}, p.err
	case "resize", "transfer", "split":
		return p.change(words[0], args, body), p.err
	case "civil", "schedule", "unschedule", "extend":
		return p.calendar(words[0], args), p.err
	case "expire":
		return quota.Expire{Most: int(p.amount(args[0]))}, p.err
	}
	return nil, fmt.Errorf("what is %q?", words[0])
}

// split cuts a line at spaces outside of double quotes, and takes the quotes off.
func split(line string) ([]string, error) {
	var words []string
	quoted := false
	fields := strings.FieldsFunc(line, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	})
	for _, field := range fields {
		words = append(words, strings.ReplaceAll(field, `"`, ""))
	}
	if quoted || len(words) == 0 {
		return nil, fmt.Errorf("the line %q cannot be read", line)
	}
	return words, nil
}

func nodeAt(word string) (tree, node string) {
	tree, node, _ = strings.Cut(word, ":")
	return tree, node
}

// parser keeps the first error.
type parser struct{ err error }

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (p *parser) meta(args []string) quota.ChangeMeta {
	var m quota.ChangeMeta
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "@by":
			m.Actor = value
		case "@for":
			m.Reason = value
		case "@request":
			m.RequestID = value
		case "@print":
			m.Fingerprint = value
		case "@expect":
			revision := uint64(p.amount(value))
			m.ExpectedRevision = &revision
		}
	}
	return m
}

func (p *parser) apply(args, body []string) quota.ApplyTrees {
	isPolicy := func(line string) bool { return strings.HasPrefix(line, "policy ") }
	c := quota.ApplyTrees{Meta: p.meta(args), Prune: slices.Contains(args, "@prune")}
	for _, line := range body {
		if isPolicy(line) {
			c.Policies = append(c.Policies, p.policy(strings.Fields(line)[1:]))
		}
	}
	for _, arg := range args {
		if names, ok := strings.CutPrefix(arg, "@remove="); ok {
			c.RemovePolicies = strings.Split(names, ",")
		}
	}
	c.Trees = p.trees(slices.DeleteFunc(slices.Clone(body), isPolicy))
	return c
}

func (p *parser) policy(words []string) quota.PolicySpec {
	s := quota.PolicySpec{Name: words[0]}
	fields := map[string]*string{
		"base": &s.Base, "unset": &s.Unset, "sum": &s.Sum, "child-limit": &s.ChildLimit,
		"unknown-nodes": &s.UnknownNodes, "claim-nodes": &s.ClaimNodes, "borrowing": &s.Borrowing,
		"preemption": &s.Preemption,
	}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		if fields[key] == nil {
			p.fail("what is the switch %s?", key)
			return s
		}
		*fields[key] = value
	}
	return s
}

func (p *parser) trees(body []string) []quota.TreeSpec {
	var trees []quota.TreeSpec
	for _, line := range body {
		words, err := split(line)
		if err != nil {
			p.fail("%w", err)
			return nil
		}
		last := len(trees) - 1
		switch {
		case words[0] == "tree":
			trees = append(trees, quota.TreeSpec{
				Name: words[1], TreeSettings: p.settings(words), Resources: p.resources(words),
				Nodes: []quota.NodeSpec{p.node(words[2:])},
			})
		case words[0] == "node" && last >= 0:
			n := p.node(words[2:])
			n.Path = words[1]
			trees[last].Nodes = append(trees[last].Nodes, n)
		case words[0] == "items" && last >= 0:
			p.items(&trees[last], words[1:])
		case words[0] == "principals" && last >= 0:
			n := &trees[last].Nodes[len(trees[last].Nodes)-1]
			n.Principals = append(n.Principals, p.principals(words[1:]))
		case words[0] == "moved" && last >= 0:
			trees[last].Moves = append(trees[last].Moves, quota.Move{From: words[1], To: words[2]})
		default:
			p.fail("what is %q?", line)
		}
	}
	return trees
}

func (p *parser) settings(words []string) quota.TreeSettings {
	s := quota.TreeSettings{
		RequireReason:    slices.Contains(words, "@require-reason"),
		RequirePrincipal: slices.Contains(words, "@require-user"),
	}
	for _, word := range words {
		if forest, ok := strings.CutPrefix(word, "@forest="); ok {
			s.Forest = forest
		}
		p.leaseSetting(&s, word)
	}
	return s
}

func (p *parser) principals(words []string) quota.PrincipalLimit {
	var l quota.PrincipalLimit
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "users":
			l.Users = strings.Split(value, ",")
		case "groups":
			l.Groups = strings.Split(value, ",")
		case "@apps":
			l.Applications = quota.AtMost(p.amount(value))
		case "@text":
			l.Description = value
		default:
			l.Limits = append(l.Limits, quota.Component{Resource: key, Amount: p.amount(value)})
		}
	}
	slices.SortFunc(l.Limits, byResource)
	return l
}

func byResource(a, b quota.Component) int { return cmp.Compare(a.Resource, b.Resource) }

func (p *parser) resources(words []string) []quota.Resource {
	var list []quota.Resource
	for _, word := range words {
		names, ok := strings.CutPrefix(word, "resources=")
		if !ok || names == "" {
			continue
		}
		for name := range strings.SplitSeq(names, ",") {
			name, unit, _ := strings.Cut(name, ":")
			units := map[string]quota.Unit{
				"": quota.Count, "count": quota.Count, "milli": quota.Milli,
				"bytes": quota.Bytes, "items": quota.Items, "odd": quota.Items + 1,
			}
			list = append(list, quota.Resource{Name: name, Unit: units[unit]})
		}
	}
	slices.SortFunc(list, func(a, b quota.Resource) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// node passes over words without = and words that belong to others.
func (p *parser) node(words []string) quota.NodeSpec {
	var n quota.NodeSpec
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		label, isLabel := strings.CutPrefix(key, "label.")
		switch {
		case p.attribute(&n, key, value):
		case !ok || key[0] == '@' || key == "resources":
		case isLabel:
			n.Labels = append(n.Labels, quota.Label{Key: label, Value: value})
		case key == "policy":
			n.Policy = value
		default:
			n.Limits = append(n.Limits, quota.ResourceLimit{Resource: key, Limit: p.limit(value)})
		}
	}
	slices.SortFunc(n.Limits, func(a, b quota.ResourceLimit) int { return cmp.Compare(a.Resource, b.Resource) })
	for _, list := range [][]quota.ResourceLimit{n.Defaults, n.Borrow, n.Lend} {
		slices.SortFunc(list, func(a, b quota.ResourceLimit) int { return cmp.Compare(a.Resource, b.Resource) })
	}
	sortLabels(n.Labels)
	return n
}

func (p *parser) attribute(n *quota.NodeSpec, key, value string) bool {
	kind, resource, _ := strings.Cut(key, ".")
	switch kind {
	case "@hard":
		n.Hard = true
	case "@apps":
		n.Applications = quota.AtMost(p.amount(value))
	case "@warn":
		n.Thresholds = p.thresholds(value)
	case "@queueing":
		n.Queueing = p.queueing(value)
	case "default":
		n.Defaults = append(n.Defaults, quota.ResourceLimit{Resource: resource, Limit: p.limit(value)})
	case "borrow":
		n.Borrow = append(n.Borrow, quota.ResourceLimit{Resource: resource, Limit: p.limit(value)})
	case "lend":
		n.Lend = append(n.Lend, quota.ResourceLimit{Resource: resource, Limit: p.limit(value)})
	default:
		return false
	}
	return true
}

// thresholds reads 80,95 or 80,95/MARGIN or none.
func (p *parser) thresholds(word string) quota.Thresholds {
	if word == "none" {
		return quota.Thresholds{None: true}
	}
	var w quota.Thresholds
	list, margin, found := strings.Cut(word, "/")
	if found {
		w.Margin = int(p.amount(margin))
	}
	for percent := range strings.SplitSeq(list, ",") {
		w.Percents = append(w.Percents, int(p.amount(percent)))
	}
	return w
}

func sortLabels(labels []quota.Label) {
	slices.SortFunc(labels, func(a, b quota.Label) int { return cmp.Compare(a.Key, b.Key) })
}

func (p *parser) limit(word string) quota.Limit {
	switch word {
	case "unset":
		return quota.Limit{}
	case "unlimited":
		return quota.NoLimit()
	}
	if amount, isAdvisory := strings.CutPrefix(word, quota.AdvisoryWord); isAdvisory {
		return quota.AdvisoryLimit(p.amount(amount))
	}
	return quota.AtMost(p.amount(word))
}

func (p *parser) amount(word string) quota.Amount {
	if word == "max" {
		return quota.MaxAmount
	}
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		p.fail("%w", err)
	}
	return quota.Amount(n)
}

func (p *parser) span(word string) quota.Span {
	d, err := time.ParseDuration(word)
	if err != nil {
		p.fail("%w", err)
	}
	return quota.Span(d.Milliseconds())
}
