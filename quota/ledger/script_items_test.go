package ledger_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// items reads which items a resource has: the tree says only that it is itemized.
func (p *parser) items(t *quota.TreeSpec, words []string) {
	i := slices.IndexFunc(t.Resources, func(r quota.Resource) bool { return r.Name == words[0] })
	if i < 0 {
		p.fail("where is resource %s?", words[0])
		return
	}
	spec := &quota.ItemSpec{}
	for _, word := range words[1:] {
		key, value, set := strings.Cut(word, "=")
		least, most, between := strings.Cut(word, "..")
		switch {
		case between:
			spec.Min, spec.Max = int(p.amount(least)), int(p.amount(most))
		case !set:
			spec.Names = append(spec.Names, word)
		default:
			p.itemSetting(spec, key, value)
		}
	}
	t.Resources[i].Items = spec
}

func (p *parser) itemSetting(spec *quota.ItemSpec, key, value string) {
	from, to, turns := strings.Cut(key, ">")
	switch {
	case turns:
		spec.Turns = append(spec.Turns, quota.Turn{From: from, To: to, After: p.span(value)})
	case key == "@lifespan":
		spec.Lifespan = p.span(value)
	case key == "@new":
		spec.State = value
	case key == "@released":
		spec.Released = value
	case key == "@expired":
		spec.Expired = value
	case key == "@retired":
		spec.Retired = value
	case key == "@removed":
		spec.Removed = value
	case key == "@ttl":
		spec.TTL = p.span(value)
	case key == "@queueing":
		spec.Queueing = p.queueing(value)
	default:
		p.fail("what is %s?", key)
	}
}

// pick reads what a claim asks of items: unlike an amount it has a colon.
func (p *parser) pick(c *quota.Claim, resource, value string) bool {
	what, in, isPick := strings.Cut(value, ":")
	if !isPick {
		return false
	}
	state, held, _ := strings.Cut(in, ">")
	pick := quota.Pick{Resource: resource, State: state, HeldState: held}
	if n, err := strconv.Atoi(what); err == nil {
		pick.Count = n
	} else {
		pick.Names = strings.Split(what, "+")
		pick.Count = len(pick.Names)
	}
	c.Picks = append(c.Picks, pick)
	return true
}

func itemName(word string) (quota.ItemName, bool) {
	tree, rest, ok := strings.Cut(word, "/")
	i := strings.LastIndexByte(rest, '/')
	if !ok || i < 0 {
		return quota.ItemName{}, false
	}
	return quota.ItemName{Tree: tree, Resource: rest[:i], Name: rest[i+1:]}, true
}

func (p *parser) itemUpdates(body []string) []quota.ItemUpdate {
	var list []quota.ItemUpdate
	for _, line := range body {
		words, err := split(line)
		if err != nil {
			p.fail("%w", err)
			return nil
		}
		u := quota.ItemUpdate{}
		u.Item, _ = itemName(words[0])
		for _, word := range words[1:] {
			key, value, _ := strings.Cut(word, "=")
			pair, isData := strings.CutPrefix(key, "data.")
			switch {
			case isData:
				u.Data = append(u.Data, quota.Label{Key: pair, Value: value})
			case key == "@state":
				u.State = value
			default:
				p.fail("what is %s?", word)
			}
		}
		sortLabels(u.Data)
		list = append(list, u)
	}
	return list
}

func (p *parser) release(args []string) quota.Release {
	c := quota.Release{ID: args[0]}
	for _, word := range args[1:] {
		if state, ok := strings.CutPrefix(word, "@state="); ok {
			c.ItemState = state
		} else if fence, ok := strings.CutPrefix(word, "@fence="); ok {
			c.Fence = uint64(p.amount(fence))
		} else if name, ok := itemName(word); ok {
			c.Items = append(c.Items, name)
		} else {
			p.fail("what is %s?", word)
		}
	}
	return c
}

// fenceOf is for commands that have only an id besides.
func (p *parser) fenceOf(args []string) uint64 {
	if len(args) < 2 {
		return 0
	}
	return uint64(p.amount(strings.TrimPrefix(args[1], "@fence=")))
}

func (p *parser) reset(args []string) quota.ResetItems {
	c := quota.ResetItems{Tree: args[0], Resource: args[1], State: args[2], To: args[3]}
	for _, word := range args[4:] {
		c.Idle = p.span(strings.TrimPrefix(word, "@idle="))
	}
	return c
}

func itemWords(s *quota.ItemSpec) string {
	if s == nil {
		return ""
	}
	text := fmt.Sprintf(": %d..%d", s.Min, s.Max)
	if len(s.Names) > 0 {
		text = ": " + strings.Join(s.Names, " ")
	}
	for _, set := range [][2]string{
		{"new", s.State},
		{"released", s.Released},
		{"expired", s.Expired},
		{"retired", s.Retired},
		{"removed", s.Removed},
	} {
		if set[1] != "" {
			text += " @" + set[0] + "=" + set[1]
		}
	}
	for _, t := range s.Turns {
		text += fmt.Sprintf(" %s>%s=%s", t.From, t.To, inWords(t.After))
	}
	return text
}

func pickWords(picks []quota.Pick) string {
	text := ""
	for _, p := range picks {
		text += fmt.Sprintf(" %s=", p.Resource)
		if len(p.Names) > 0 {
			text += strings.Join(p.Names, "+")
		} else {
			text += fmt.Sprintf("%d", p.Count)
		}
		text += ":" + p.State
		if p.HeldState != "" {
			text += ">" + p.HeldState
		}
	}
	return text
}

// holds lists items. Those of an ended allocation have no state.
func (p *player) holds(a quota.AllocationInfo) {
	for _, c := range a.Claims {
		for _, h := range c.Items {
			text := "  " + h.Resource + " " + h.Name
			if h.State != "" {
				text += ", " + h.State + dataWords(h.Data) + ", " +
					moment(quota.Instant(h.UpdatedWall-wallBase), h.UpdatedWall)
			}
			p.say("%s", text)
		}
	}
}

func dataWords(data []quota.Label) string {
	text := ""
	for _, pair := range data {
		text += fmt.Sprintf(", data %s=%s", pair.Key, pair.Value)
	}
	return text
}

// items pages by two, so that every scenario tries the pages.
func (p *player) items(v ledger.Sandbox, args []string) {
	f := quota.ItemFilter{}
	f.Tree, f.Resource, _ = strings.Cut(args[0], "/")
	for _, word := range args[1:] {
		key, value, _ := strings.Cut(word, "=")
		*map[string]*string{"state": &f.State, "name": &f.Name, "owner": &f.Owner}[key] = value
	}
	var all []quota.ItemInfo
	for after, more := (*quota.ItemName)(nil), true; more; more = after != nil {
		page, refused := v.Items(f, after, 2, true)
		if refused != nil {
			p.say("refused %s: %s", refused.Kind, refused.Error())
			return
		}
		all, after = append(all, page.Items...), page.Next
	}
	p.itemLines(all, "")
}

func (p *player) itemLines(items []quota.ItemInfo, repeated string) {
	if len(items) == 0 {
		p.say("no items")
	}
	for _, it := range items {
		text := fmt.Sprintf("%s/%s/%s, %s%s", it.Tree, it.Resource, it.Name, it.State, dataWords(it.Data))
		if it.Allocation != "" {
			text += fmt.Sprintf(", held by %s with fence %d", it.Allocation, it.Fence)
		}
		if it.Owner != "" {
			text += " for " + it.Owner
		}
		if it.Leaving {
			text += ", leaving"
		}
		if it.Expires > 0 {
			text += ", goes " + moment(it.Expires, it.ExpiresWall)
		}
		p.say("%s, %s%s", text, moment(it.Updated, it.UpdatedWall), repeated)
	}
}

func (p *player) counted(v ledger.Sandbox, args []string) {
	tree, resource := "", ""
	if len(args) > 0 {
		tree, resource, _ = strings.Cut(args[0], "/")
	}
	counts, refused := v.ItemCounts(tree, resource)
	if refused != nil {
		p.say("refused %s: %s", refused.Kind, refused.Error())
	}
	for _, c := range counts {
		p.say("%s/%s: states %v, owners %v", c.Tree, c.Resource, c.States, c.Owners)
	}
}

func itemCount(c quota.Counts) string {
	if c.Items == 0 {
		return ""
	}
	return fmt.Sprintf(", %d items", c.Items)
}
