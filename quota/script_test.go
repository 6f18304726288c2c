package quota_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/quota"
)

// The words of a scenario. AT is tree or tree:path, AMOUNTS is resource=number or resource=max, LIMITS also knows
// resource=unlimited and resource=unset; max is the largest amount there is.
//
//	apply [META]                       make trees so, with indented lines:
//	  tree NAME resources=NAME[:UNIT],… [policy=NAME] [LIMITS] [label.KEY=VALUE]…
//	  node PATH [policy=NAME] [LIMITS] [label.KEY=VALUE]…
//	set AT LIMITS [META]               change limits of one node
//	delete TREE [META]
//	allocate ID [AT AMOUNTS…]… [label.KEY=VALUE]…
//	release ID
//	dry COMMAND                        say what a command would do
//	tick DURATION                      let ledger time pass
//	freeze                             go on with a ledger loaded from an image of this one
//	bounds NAME=NUMBER…                begin anew with other bounds
//	usage AT | tree NAME | trees | list [AT] [label.KEY=VALUE]… | get ID | history [before=REVISION] [max=NUMBER] | counts
//
// META is @by=ACTOR @for=REASON @request=ID @print=FINGERPRINT @expect=REVISION.
func parseCommand(words, body []string) (quota.Command, error) {
	p := &parser{}
	switch args := words[1:]; words[0] {
	case "apply":
		meta := p.meta(args)
		return quota.ApplyTrees{Meta: meta, Trees: p.trees(body)}, p.err
	case "set":
		tree, node := at(args[0])
		n := p.node(args[1:])
		return quota.SetLimits{Meta: p.meta(args), Tree: tree, Node: node, Limits: n.Limits}, p.err
	case "delete":
		return quota.DeleteTree{Meta: p.meta(args), Tree: args[0]}, p.err
	case "allocate":
		return p.allocate(args), p.err
	case "release":
		return quota.Release{ID: args[0]}, nil
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

// at cuts tree:path.
func at(word string) (tree, node string) {
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
			trees = append(trees, quota.TreeSpec{Name: words[1], Resources: p.resources(words), Nodes: []quota.NodeSpec{p.node(words[2:])}})
		case words[0] == "node" && last >= 0:
			n := p.node(words[2:])
			n.Path = words[1]
			trees[last].Nodes = append(trees[last].Nodes, n)
		default:
			p.fail("what is %q?", line)
		}
	}
	return trees
}

func (p *parser) resources(words []string) []quota.Resource {
	var list []quota.Resource
	for _, word := range words {
		names, ok := strings.CutPrefix(word, "resources=")
		if !ok || names == "" {
			continue
		}
		for name := range strings.SplitSeq(names, ",") {
			name, unit, _ := strings.Cut(name, ":")
			units := map[string]quota.Unit{"": quota.Count, "count": quota.Count, "milli": quota.Milli, "bytes": quota.Bytes}
			list = append(list, quota.Resource{Name: name, Unit: units[unit]})
		}
	}
	slices.SortFunc(list, func(a, b quota.Resource) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// node reads the attributes of a node; what has no = and what belongs to others is passed over.
func (p *parser) node(words []string) quota.NodeSpec {
	var n quota.NodeSpec
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		label, isLabel := strings.CutPrefix(key, "label.")
		switch {
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
	sortLabels(n.Labels)
	return n
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

// allocate reads claims: a word without = begins the next one.
func (p *parser) allocate(args []string) quota.Allocate {
	request := quota.Allocate{ID: args[0]}
	for _, word := range args[1:] {
		key, value, ok := strings.Cut(word, "=")
		label, isLabel := strings.CutPrefix(key, "label.")
		last := len(request.Claims) - 1
		switch {
		case !ok:
			tree, node := at(word)
			request.Claims = append(request.Claims, quota.Claim{Tree: tree, Node: node})
		case isLabel:
			request.Labels = append(request.Labels, quota.Label{Key: label, Value: value})
		case last < 0:
			p.fail("where is %q claimed?", word)
		default:
			c := &request.Claims[last]
			c.Amounts = append(c.Amounts, quota.Component{Resource: key, Amount: p.amount(value)})
			slices.SortFunc(c.Amounts, func(a, b quota.Component) int { return cmp.Compare(a.Resource, b.Resource) })
		}
	}
	sortLabels(request.Labels)
	return request
}
