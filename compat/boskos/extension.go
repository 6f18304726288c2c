package boskos

import (
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate/compat"
)

// extensionKey is the key of our extensions, at the top of a file and in its entries. Boskos ignores it, so one file
// serves both.
const extensionKey = "quorate"

// DefaultTTL is how long a lease lasts without an update: the default of Boskos's reaper.
const DefaultTTL = 30 * time.Minute

// maxTTL bounds how long a lease lasts.
const maxTTL = 7 * 24 * time.Hour

// Cycle is how resources of a type change over time, without a reaper or cleaner.
type Cycle struct {
	// TTL is how long a lease lasts without an update; 0 is without end. Nil if the entry does not say.
	TTL *time.Duration
	// NoCleaner is true if dynamic resources that are too many or too old are removed at once. Nil if the entry does not
	// say.
	NoCleaner *bool
	// Released is the state of resources that are released without one; the initial state if empty. Expired is the state
	// of resources whose lease expired; Released if empty.
	Released, Expired string
	// Turns are timed changes of state.
	Turns []Turn
}

// Turn changes the state of a resource that is not held, after it was in a state for some time.
type Turn struct {
	State, NewState string
	After           time.Duration
}

// Tenant is a node at which the resources of its owners are counted.
type Tenant struct {
	// Node is its path below the root.
	Node string
	// Owners are patterns, see LabelOwners.
	Owners []string
	// Limits are the most resources that may be held at once, by type.
	Limits map[string]int64
	// Also is a node of another tree, see LabelAlso.
	Also string
}

func (p *parser) parseExtension(node *yaml.Node) {
	for _, pair := range p.Pairs(extensionKey, node) {
		field := extensionKey + "." + pair.Key
		switch pair.Key {
		case "ttl":
			p.config.TTL = p.parseTTL(field, pair.Value)
		case "cleaner":
			p.config.NoCleaner = !p.parseBool(field, pair.Value)
		case "tenants":
			for _, item := range p.Items(field, pair.Value) {
				p.config.Tenants = append(p.config.Tenants, p.parseTenant(field, item))
			}
		default:
			p.unknownKey(field, pair)
		}
	}
}

func (p *parser) unknownKey(field string, pair compat.Pair) {
	p.Add("line %d: %s is not known here", pair.Line, field)
}

func (p *parser) parseTenant(what string, node *yaml.Node) Tenant {
	t := Tenant{}
	for _, pair := range p.Pairs(what, node) {
		field := what + "." + pair.Key
		switch pair.Key {
		case "node":
			t.Node = p.Text(field, pair.Value)
		case "owners":
			for _, item := range p.Items(field, pair.Value) {
				t.Owners = append(t.Owners, p.parsePattern(field, item))
			}
		case "limits":
			t.Limits = p.parseNeeds(field, pair.Value)
		case "also":
			t.Also = p.Text(field, pair.Value)
		default:
			p.unknownKey(field, pair)
		}
	}
	for name := range strings.SplitSeq(t.Node, "/") {
		if !compat.IsName(name) {
			p.Add("line %d: %s.node is %.80q; it must be names joined by slashes: letters, digits and _ . @ + -",
				node.Line, what, t.Node)
			break
		}
	}
	if tree, _, cut := strings.Cut(t.Also, ":"); t.Also != "" && (!cut || !compat.IsName(tree)) {
		p.Add("line %d: %s.also is %.80q; it must be a tree, a colon, and the path of a node",
			node.Line, what, t.Also)
	}
	return t
}

// parsePattern reads one pattern of owners; a label holds several between blanks.
func (p *parser) parsePattern(what string, node *yaml.Node) string {
	text := p.Text(what, node)
	if text != "" && (len(text) > maxPattern || strings.ContainsFunc(text, isBlank)) {
		p.Add("line %d: %s: %.80q is not a pattern: up to %d bytes without blanks, a star stands for anything",
			node.Line, what, text, maxPattern)
	}
	return text
}

func isBlank(r rune) bool { return len(strings.Fields(string(r))) == 0 }

func (p *parser) parseCycle(what string, node *yaml.Node) Cycle {
	c := Cycle{}
	for _, pair := range p.Pairs(what, node) {
		field := what + "." + pair.Key
		switch pair.Key {
		case "ttl":
			c.TTL = p.parseTTL(field, pair.Value)
		case "cleaner":
			c.NoCleaner = new(!p.parseBool(field, pair.Value))
		case "released":
			c.Released = p.parseState(field, pair.Value)
		case "expired":
			c.Expired = p.parseState(field, pair.Value)
		case "turns":
			for _, item := range p.Items(field, pair.Value) {
				c.Turns = append(c.Turns, p.parseTurn(field, item))
			}
		default:
			p.unknownKey(field, pair)
		}
	}
	return c
}

func (p *parser) parseTurn(what string, node *yaml.Node) Turn {
	t := Turn{}
	for _, pair := range p.Pairs(what, node) {
		field := what + "." + pair.Key
		switch pair.Key {
		case "state":
			t.State = p.parseState(field, pair.Value)
		case "new-state":
			t.NewState = p.parseState(field, pair.Value)
		case "after":
			t.After = p.parseDuration(field, pair.Value)
		default:
			p.unknownKey(field, pair)
		}
	}
	if t.State == "" || t.NewState == "" || t.After <= 0 {
		p.Add("line %d: %s needs state, new-state, and after, a duration above 0", node.Line, what)
	}
	return t
}

func (p *parser) parseTTL(what string, node *yaml.Node) *time.Duration {
	ttl := p.parseDuration(what, node)
	if ttl > maxTTL {
		p.Add("line %d: %s is %v; a lease lasts up to %v", node.Line, what, ttl, maxTTL)
	}
	return &ttl
}

func (p *parser) parseBool(what string, node *yaml.Node) bool {
	flag, err := strconv.ParseBool(node.Value)
	if err != nil || node.Kind != yaml.ScalarNode || node.Tag != "!!bool" {
		p.Add("line %d: %s is %.40q; it must be true or false", node.Line, what, node.Value)
	}
	return flag
}

func (p *parser) parseState(what string, node *yaml.Node) string {
	text := p.Text(what, node)
	if len(text) > maxState {
		p.Add("line %d: %s: %.80q is not a state here: up to %d bytes", node.Line, what, text, maxState)
	}
	return text
}
