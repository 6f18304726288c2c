package boskos

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/compat"
)

// addNotes tell what a reader of the file should know.
func addNotes(c *compat.Conversion, config *Config, pools []*pool) {
	for _, e := range config.Entries {
		if len(e.Needs) > 0 {
			c.Note("type %q: needs (%s) are checked, as by Boskos, and not in the tree: Boskos's mason takes such resources, "+
				"and nothing here does; a request may ask for all of them at once", e.Type, needsText(e.Needs))
		}
		if e.HasConfig {
			c.Note("type %q: config is not read: it tells Boskos's mason how to make a resource, and may have credentials",
				e.Type)
		}
		if e.Lifespan > 0 && e.Lifespan < time.Second {
			c.Note("type %q: its lifespan is %v: Boskos reads a number without a unit as nanoseconds, and so does this; an "+
				"item goes about %d ms after its release. Write a unit, such as 48h, if you mean another time",
				e.Type, e.Lifespan, wholeMs(e.Lifespan))
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
	if at := slices.IndexFunc(pools, func(p *pool) bool { return p.made }); at >= 0 {
		c.Note("resources without names are called by their type and a number, such as %s", itemName(pools[at].name)+"-1")
	}
	noteCleaned(c, pools)
	for _, p := range pools {
		noteClashes(c, p, pools)
	}
}

// noteCleaned says who removes dynamic resources, if a file gives that to a cleaner.
func noteCleaned(c *compat.Conversion, pools []*pool) {
	if slices.ContainsFunc(pools, func(p *pool) bool { return p.cleaned }) {
		c.Note("resources without names that are too many or too old become %s, and go when a cleaner releases them as "+
			"%s; \"quorate: {cleaner: false}\" in the file makes them go at once", stateToBeDeleted, stateTombstone)
	}
}

func needsText(needs map[string]int64) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		words = append(words, fmt.Sprintf("%d %s", needs[name], name))
	}
	return strings.Join(words, ", ")
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

// itemName is the prefix of items that are made for a type.
func itemName(rtype string) string { return strings.ReplaceAll(rtype, "/", "-") }
