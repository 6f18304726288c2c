package ledger_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// player plays a scenario on a ledger; script_test.go reads its words, answer_test.go writes its answers.
type player struct {
	ledger *ledger.Ledger
	bounds quota.Bounds
	now    quota.Stamp
	// freezeAlways freezes and loads after every command.
	freezeAlways bool
	out          strings.Builder
}

// wallBase keeps the wall clock visibly apart from ledger time.
const wallBase = 1_000_000_000_000

func newPlayer(freezeAlways bool) *player {
	b := quota.DefaultBounds()
	return &player{ledger: ledger.New(b), bounds: b, now: quota.Stamp{Wall: wallBase}, freezeAlways: freezeAlways}
}

func (p *player) say(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }

// play carries out one command, verifies the ledger, and answers what it said.
func (p *player) play(command []string) (string, error) {
	p.out.Reset()
	words, err := split(command[0])
	if err != nil {
		return "", err
	}
	if err := p.perform(words, command[1:]); err != nil {
		return "", err
	}
	if p.freezeAlways {
		if err := p.freeze(); err != nil {
			return "", err
		}
	}
	return p.out.String(), p.ledger.Check()
}

func (p *player) perform(words, body []string) error {
	args := words[1:]
	switch words[0] {
	case "bounds":
		return p.setBounds(args)
	case "tick":
		return p.tick(args)
	case "freeze":
		p.say("frozen and loaded")
		return p.freeze()
	case "dry":
		c, err := parseCommand(args, body)
		if err == nil {
			p.outcome(c, p.ledger.Sandbox().DryRun(c))
		}
		return err
	case "whatif":
		return p.whatIf(args, body)
	case "apply", "set", "move", "hold", "drain", "resume", "rollback", "delete", "allocate", "release",
		"renew", "update", "reset", "confirm", "cancel", "expire", "resize", "transfer", "split", "civil", "schedule",
		"unschedule", "extend":
		c, err := parseCommand(words, body)
		if err == nil {
			p.outcome(c, p.ledger.Apply(p.now, c))
			p.happened(c)
		}
		return err
	}
	return p.read(words[0], args)
}

// whatIf asks a copy of the ledger what a change of the configuration would do.
func (p *player) whatIf(words, body []string) error {
	c, err := parseCommand(words, body)
	if err != nil {
		return err
	}
	scratch, err := ledger.CopyForPlans(quota.DefaultBounds(), p.ledger.Format(), p.ledger.Snapshot())
	if err == nil {
		p.outcome(c, scratch.Sandbox().WhatIf(ledger.Origin{Index: 1}, c))
	}
	return err
}

func (p *player) setBounds(args []string) error {
	b := quota.DefaultBounds()
	fields := map[string]*int{
		"trees": &b.Trees, "nodes": &b.Nodes, "nodes-per-tree": &b.NodesPerTree, "depth": &b.Depth,
		"resources": &b.Resources,
		"claims":    &b.Claims, "labels": &b.Labels, "held": &b.Held, "ended": &b.Ended, "revisions": &b.Revisions,
		"trees-per-change": &b.TreesPerChange, "principals": &b.Principals, "groups": &b.Groups,
		"moves": &b.Moves, "events": &b.Events, "history-nodes": &b.HistoryNodes, "cells": &b.Cells, "items": &b.Items,
		"items-of-one": &b.ItemsOfOne, "picks": &b.Picks,
		"turns": &b.Turns, "data": &b.Data, "waiting": &b.Waiting, "policies": &b.Policies,
	}
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		n, err := strconv.Atoi(value)
		if err != nil || fields[key] == nil {
			return fmt.Errorf("what is the bound %s?", arg)
		}
		*fields[key] = n
	}
	p.bounds, p.ledger = b, ledger.New(b)
	return nil
}

func (p *player) tick(args []string) error {
	if len(args) != 1 {
		return errors.New("tick how long?")
	}
	d, err := time.ParseDuration(args[0])
	p.now.At += quota.Instant(d.Milliseconds())
	p.now.Wall += d.Milliseconds()
	return err
}

// freeze goes on with a ledger loaded from an image of this one, which must have the same image.
func (p *player) freeze() error {
	image := p.ledger.Snapshot()
	loaded, err := quotatest.Restore(image, p.bounds)
	if err != nil {
		return err
	}
	if before, after := quotatest.ImageText(image), quotatest.ImageText(loaded.Snapshot()); before != after {
		return fmt.Errorf("a loaded ledger has another image:\n%s\n%s", before, after)
	}
	p.ledger = loaded
	return nil
}
