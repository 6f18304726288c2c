package boskos

import (
	"regexp"
	"slices"
	"strings"

	"github.com/quorate/quorate/compat"
)

// addNotes tell what a reader of the file should know.
func addNotes(c *compat.Conversion, config *Config, pools []*pool) {
	for _, e := range config.Entries {
		if len(e.Needs) > 0 {
			c.Note("type %q: needs are checked and not in the tree: claim what is needed in the same request", e.Type)
		}
		if e.HasConfig {
			c.Note("type %q: config is not read", e.Type)
		}
		at := slices.IndexFunc(pools, func(p *pool) bool { return p.name == e.Type })
		if pools[at].state != e.State {
			c.Note("type %q: its first entry says the state %q; that of the others is not read", e.Type,
				pools[at].state)
		}
	}
	if config.TTL == nil && slices.ContainsFunc(pools, func(p *pool) bool { return p.cycle.TTL == nil }) {
		c.Note("a lease that is not updated for %v expires, as with Boskos's reaper; \"quorate: {ttl: "+
			"0s}\" in the file "+
			"makes leases last for ever", strings.TrimSuffix(DefaultTTL.String(), "0s"))
	}
	for _, p := range pools {
		if p.made {
			c.Note("resources without names are called by their type and a number, such as %s, and those that "+
				"are too many or "+
				"too old go by themselves: none becomes toBeDeleted", itemName(p.name)+"-1")
			break
		}
	}
	for _, p := range pools {
		noteClashes(c, p, pools)
	}
}

// noteClashes adds notes about static names that an item created on demand could also get.
func noteClashes(c *compat.Conversion, p *pool, pools []*pool) {
	if !p.made {
		return
	}
	made := regexp.MustCompile("^" + regexp.QuoteMeta(itemName(p.name)) + "-[1-9][0-9]*$")
	for _, other := range pools {
		for _, name := range other.names {
			if made.MatchString(name) {
				c.Note("type %q: the name %q may come to be made for type %q as well", other.name, name, p.name)
			}
		}
	}
}

// itemName begins the names of items that are made for a type.
func itemName(rtype string) string { return strings.ReplaceAll(rtype, "/", "-") }
