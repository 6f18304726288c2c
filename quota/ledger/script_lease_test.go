package ledger_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/quota"
)

func (p *parser) renew(args, body []string) quota.Renew {
	c := quota.Renew{ID: args[0], Items: p.itemUpdates(body)}
	for _, word := range args[1:] {
		key, value, _ := strings.Cut(word, "=")
		pair, isData := strings.CutPrefix(key, "data.")
		switch {
		case isData:
			c.Data = append(c.Data, quota.Label{Key: pair, Value: value})
		case key == "@fence":
			c.Fence = uint64(p.amount(value))
		case key == "@ttl":
			c.TTL = p.span(value)
		default:
			p.fail("what is %s?", word)
		}
	}
	sortLabels(c.Data)
	return c
}

// leaseSetting reads what is said of the leases of a tree; other words are passed over.
func (p *parser) leaseSetting(s *quota.TreeSettings, word string) {
	key, value, _ := strings.Cut(word, "=")
	spans := map[string]*quota.Span{
		"@lease-default": &s.Leases.Default, "@lease-max": &s.Leases.Max, "@lease-grace": &s.Leases.Grace,
		"@overtake": &s.Overtake,
	}
	if span := spans[key]; span != nil {
		*span = p.span(value)
	}
}

func (p *parser) queueing(word string) quota.Queueing {
	words := map[string]quota.Queueing{
		"strict": quota.Strict, "best-effort": quota.BestEffort,
		"odd": quota.BestEffort + 1,
	}
	q, known := words[word]
	if !known {
		p.fail("what is queueing %s?", word)
	}
	return q
}

func leaseSettings(s quota.TreeSettings) string {
	text := ""
	for _, set := range []struct {
		word string
		span quota.Span
	}{
		{"lease-default", s.Leases.Default},
		{"lease-max", s.Leases.Max},
		{"lease-grace", s.Leases.Grace},
		{"overtake", s.Overtake},
	} {
		if set.span != 0 {
			text += fmt.Sprintf(" @%s=%s", set.word, inWords(set.span))
		}
	}
	return text
}

func inWords(s quota.Span) string { return (time.Duration(s) * time.Millisecond).String() }

func leaseWords(a quota.AllocationInfo) string {
	text := ""
	if a.TTL > 0 {
		text += ", lease of " + inWords(a.TTL)
	}
	if a.ExpiresAt > 0 {
		text += " until " + inWords(quota.Span(a.ExpiresAt))
	}
	if a.For > 0 || a.EndsAt > 0 {
		text += ", declared " + inWords(a.For)
	}
	if a.EndsAt > 0 {
		text += " until " + inWords(quota.Span(a.EndsAt))
	}
	if a.Unclaimed {
		text += " unclaimed"
	}
	if a.RevokedBy != "" {
		text += ", revoked for " + a.RevokedBy
	}
	for _, pair := range a.Data {
		text += fmt.Sprintf(", data %s=%s", pair.Key, pair.Value)
	}
	return text
}
