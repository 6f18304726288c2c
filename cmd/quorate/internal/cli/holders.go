package cli

import (
	"fmt"
	"strconv"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// printHolders prints a line for each limit in the way of a denied request: who holds what counts against it.
func (c *Env) printHolders(decision *quoratev1.Decision) {
	for _, level := range decision.GetHolders() {
		var parts []string
		for _, g := range level.GetGroups() {
			parts = append(parts, c.Units.LevelAmount(level, g.GetAmount())+" "+GroupText(level.GetTree(), g))
		}
		if level.GetOthers() > 0 {
			parts = append(parts, c.Units.LevelAmount(level, level.GetOthers())+" others")
		}
		if len(level.GetGroups()) > 0 {
			c.Messagef("  held at %s  %s: %s", PlaceOf(level.GetTree(), level.GetNode()), LimitText(level),
				strings.Join(parts, "; "))
		}
	}
}

// LevelAmount writes an amount of what is limited at a level.
func (u Units) LevelAmount(level *quoratev1.LevelHolders, amount int64) string {
	return u.FormatAmount(level.GetTree(), level.GetResource(), amount)
}

// BlockerTexts say who the allocations, or the requests ahead, at a level are.
func (u Units) BlockerTexts(level *quoratev1.LevelHolders, list []*quoratev1.Blocker, nowMs int64) []string {
	texts := make([]string, len(list))
	for i, b := range list {
		text := b.GetId()
		if position := b.GetPosition(); position > 0 {
			text = strconv.FormatInt(position, 10) + ". " + text
		}
		if amount := b.GetAmount(); amount > 0 {
			text += ": " + u.LevelAmount(level, amount)
		}
		text += " at " + PlaceOf(level.GetTree(), b.GetNode()).String()
		for _, party := range []struct{ what, name string }{
			{"user", b.GetUser()}, {"application", b.GetApplication()}, {"owner", b.GetOwner()},
		} {
			if party.name != "" {
				text += ", " + party.what + " " + party.name
			}
		}
		text += ", since " + FormatTime(b.GetBeganAt())
		if b.GetPosition() == 0 && b.GetExpiresLedgerMs() > 0 {
			text += ", ends in " + RoundSpan(b.GetExpiresLedgerMs()-nowMs)
		}
		texts[i] = text
	}
	return texts
}

// GroupText says who a group of holders is, and where.
func GroupText(tree string, g *quoratev1.HolderGroup) string {
	text := "at " + PlaceOf(tree, g.GetNode()).String()
	if g.GetUser() != "" {
		text += ", user " + g.GetUser()
	}
	if g.GetOwner() != "" {
		text += ", owner " + g.GetOwner()
	}
	if g.GetClaims() > 1 {
		text += fmt.Sprintf(" (%d claims)", g.GetClaims())
	}
	return text
}
