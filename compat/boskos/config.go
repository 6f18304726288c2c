// Package boskos serves the HTTP API of Boskos, which leases named resources to test jobs, and converts its
// configuration.
package boskos

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate/compat"
)

// Config is a configuration file that has passed all checks.
type Config struct {
	// Entries are in the order of the file; a type may have several.
	Entries []Entry
	// TTL is the TTL of types that do not set one; DefaultTTL if nil.
	TTL *time.Duration
	// NoCleaner is true if no cleaner runs for types that do not say whether one does.
	NoCleaner bool
	// Tenants are in the order of the file.
	Tenants []Tenant
}

// Entry is one entry of resources: static if it has names, dynamic otherwise.
type Entry struct {
	// Type is what clients ask for.
	Type string
	// State is the initial state of its resources; "free" if the file does not say.
	State string
	// Names are those of static resources, each unique in the file.
	Names []string
	// MinCount and MaxCount bound how many dynamic resources there are; 0 <= MinCount <= MaxCount.
	MinCount, MaxCount int64
	// Lifespan is how long a dynamic resource stays after a release; 0 is without end.
	Lifespan time.Duration
	// Needs are how many resources of other types each resource of this one is made of.
	Needs map[string]int64
	// HasConfig is true if the entry configures the creation of its resources. That part is not read, because it may have
	// credentials.
	HasConfig bool
	// Cycle is how the resources change over time.
	Cycle Cycle
}

// Count returns the most resources of the entry.
func (e Entry) Count() int64 { return max(int64(len(e.Names)), e.MaxCount) }

// States with a meaning in Boskos.
const (
	stateFree = "free"
	// stateToBeDeleted is that of dynamic resources that are too many or too old, until a cleaner has seen them.
	stateToBeDeleted = "toBeDeleted"
	// stateTombstone is the one in which a cleaner leaves them, and in which they are removed.
	stateTombstone = "tombstone"
)

const (
	// maxCount keeps sums of counts far from overflow; the largest pool known has a thousand.
	maxCount = 1 << 31
	// maxState is the bound of states here.
	maxState = 63
	// maxPattern is the most bytes of a pattern of owners, which has to fit in a label.
	maxPattern = 256
	// maxNameBytes is the bound of DNS-1123 subdomains.
	maxNameBytes = 253
)

var subdomain = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)

// Parse reads a configuration file and checks what Boskos checks, all problems at once. As there, unknown keys are
// ignored and a type may have several entries. The key "quorate", at the top and in entries, is ours.
func Parse(data []byte) (*Config, error) {
	root, err := compat.YAML(data)
	if err != nil {
		return nil, err
	}
	p := &parser{names: map[string]int{}}
	if root != nil {
		for _, pair := range p.Pairs("the configuration", root) {
			switch pair.Key {
			case "resources":
				for i, item := range p.Items("resources", pair.Value) {
					p.parseEntry(fmt.Sprintf("resources[%d]", i), item)
				}
			case extensionKey:
				p.parseExtension(pair.Value)
			}
		}
	}
	if len(p.config.Entries) == 0 && len(p.Problems) == 0 {
		p.Add("empty config: there is no entry below resources")
	}
	p.checkNeeds()
	if err := p.Err(); err != nil {
		return nil, err
	}
	return &p.config, nil
}

type parser struct {
	compat.Problems
	config Config
	lines  []int          // of the entries
	names  map[string]int // lines of the names of static resources
}

func (p *parser) parseEntry(what string, node *yaml.Node) {
	e := Entry{State: stateFree}
	counted := false
	for _, pair := range p.Pairs(what, node) {
		field := what + "." + pair.Key
		switch pair.Key {
		case "type":
			e.Type = p.Text(field, pair.Value)
		case "state":
			e.State = p.parseState(field, pair.Value)
		case "names":
			e.Names = p.staticNames(field, pair.Value)
		case "min-count":
			e.MinCount, counted = p.parseCount(field, pair.Value), true
		case "max-count":
			e.MaxCount, counted = p.parseCount(field, pair.Value), true
		case "lifespan":
			e.Lifespan = p.parseDuration(field, pair.Value)
		case "needs":
			e.Needs = p.parseNeeds(field, pair.Value)
		case "config":
			e.HasConfig = true
		case extensionKey:
			e.Cycle = p.parseCycle(field, pair.Value)
		}
	}
	switch dynamic := len(e.Names) == 0; {
	case e.Type == "":
		p.Add("line %d: %s.type must be set", node.Line, what)
	case !dynamic && counted && e.MinCount+e.MaxCount > 0:
		p.Add("line %d: %s has names, so it has no min-count or max-count", node.Line, what)
	case dynamic && e.MaxCount == 0:
		p.Add("line %d: %s has no names, so its max-count must be above 0", node.Line, what)
	case dynamic && e.MinCount > e.MaxCount:
		p.Add("line %d: %s: min-count %d is above max-count %d", node.Line, what, e.MinCount, e.MaxCount)
	default:
		p.config.Entries = append(p.config.Entries, e)
		p.lines = append(p.lines, node.Line)
	}
}

func (p *parser) staticNames(what string, node *yaml.Node) []string {
	var names []string
	for _, name := range p.Items(what, node) {
		switch line, again := p.names[name.Value]; {
		case name.Kind != yaml.ScalarNode || len(name.Value) > maxNameBytes || !subdomain.MatchString(name.Value):
			p.Add("line %d: %s: %.80q is not a name: lower-case letters, digits, dots and dashes, as in DNS, up to %d",
				name.Line, what, name.Value, maxNameBytes)
		case again:
			p.Add("line %d: %s: %q is given twice; the first is in line %d", name.Line, what, name.Value, line)
		default:
			p.names[name.Value] = name.Line
		}
		names = append(names, name.Value)
	}
	return names
}

func (p *parser) parseCount(what string, node *yaml.Node) int64 {
	n := p.Count(what, node)
	if n > maxCount {
		p.Add("line %d: %s is %d; up to %d are read", node.Line, what, n, maxCount)
		return 0
	}
	return n
}

// parseDuration reads Go's durations, 48h, or a whole number of nanoseconds.
func (p *parser) parseDuration(what string, node *yaml.Node) time.Duration {
	d, err := time.ParseDuration(node.Value)
	if n, notNumber := strconv.ParseInt(node.Value, 10, 64); notNumber == nil {
		d, err = time.Duration(n), nil
	}
	if err != nil || node.Kind != yaml.ScalarNode || d < 0 {
		p.Add("line %d: %s is %.40q; it must be a duration, such as 48h, or nanoseconds", node.Line, what, node.Value)
		return 0
	}
	return d
}

func (p *parser) parseNeeds(what string, node *yaml.Node) map[string]int64 {
	needs := map[string]int64{}
	for _, pair := range p.Pairs(what, node) {
		needs[pair.Key] = p.parseCount(what+"."+pair.Key, pair.Value)
	}
	return needs
}

func countsOf(config *Config) map[string]int64 {
	counts := map[string]int64{}
	for _, e := range config.Entries {
		counts[e.Type] += e.Count()
	}
	return counts
}

// checkNeeds: every needed type exists and has enough for all that may be made of it, by all entries together.
func (p *parser) checkNeeds() {
	counts, needed := countsOf(&p.config), map[string]int64{}
	for i, e := range p.config.Entries {
		for _, name := range slices.Sorted(maps.Keys(e.Needs)) {
			if _, known := counts[name]; !known {
				p.Add("line %d: %q needs %q, which is not a type of this file", p.lines[i], e.Type, name)
				continue
			}
			if each := e.Needs[name]; each > 0 && e.MaxCount > (math.MaxInt64-needed[name])/each {
				needed[name] = math.MaxInt64
			} else {
				needed[name] += each * e.MaxCount
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		if needed[name] > counts[name] {
			p.Add("%d of %q are needed if all are made that may be, and there are %d", needed[name], name, counts[name])
		}
	}
}
