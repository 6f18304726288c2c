package ledger_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

func (p *parser) hold(word string, args []string) quota.Command {
	c := quota.CordonNode{Meta: p.meta(args), Drain: word == "drain", Deny: slices.Contains(args, "@deny")}
	c.Tree, c.Node = nodeAt(args[0])
	for _, arg := range args[1:] {
		switch key, value, _ := strings.Cut(arg, "="); key {
		case "@until":
			c.For = p.span(value)
		case "@grace":
			c.Grace = p.span(value)
		}
	}
	return c
}

func formatHold(h quota.NodeCordonInfo) string {
	text := "queue"
	if h.Deny {
		text = "deny"
	}
	if h.Drain {
		text += " drain"
	}
	if h.Until != 0 {
		text += fmt.Sprintf(" until %dms", h.Until)
	}
	if h.Actor+h.Reason != "" {
		text += fmt.Sprintf(" by %q for %q", h.Actor, h.Reason)
	}
	switch {
	case h.Drained:
		text += ", drained"
	case h.Drain:
		text += ", draining"
	}
	for _, used := range h.Used {
		text += fmt.Sprintf(" %s=%d", used.Resource, used.Amount)
	}
	return quota.Place(h.Tree, h.Node) + ": " + text
}
