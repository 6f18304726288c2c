package cli

import (
	"fmt"
	"strings"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// printHolders prints a line for each limit in the way of a denied request: who holds what counts against it.
func (c *Env) printHolders(decision *quoratev1.Decision) {
	for _, level := range decision.GetHolders() {
		var parts []string
		for _, g := range level.GetGroups() {
			parts = append(parts, c.levelAmount(level, g.GetAmount())+" "+GroupText(level.GetTree(), g))
		}
		if level.GetOthers() > 0 {
			parts = append(parts, c.levelAmount(level, level.GetOthers())+" others")
		}
		if len(level.GetGroups()) > 0 {
			c.Messagef("  held of %s  %s: %s", PlaceOf(level.GetTree(), level.GetNode()), LimitText(level),
				strings.Join(parts, "; "))
		}
	}
}

func (c *Env) levelAmount(level *quoratev1.LevelHolders, amount int64) string {
	return c.Units.FormatAmount(level.GetTree(), level.GetResource(), amount)
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
