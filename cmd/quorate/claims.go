package main

import (
	"fmt"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/manifest"
)

// claims gathers --at, --amount and --item in the order in which they stand on the command line: each amount and item
// belongs to the place before it.
type claims struct {
	list []typedClaim
}

// typedClaim is one claim as it stands on the command line.
type typedClaim struct {
	at      place
	amounts map[string]string // as written, by resource: units come later, from the server
	picks   []*quoratev1.ItemPick
}

// atFlag begins a claim.
type atFlag struct {
	claims *claims
}

// Set begins a claim at a place.
func (f atFlag) Set(text string) error {
	at, err := parsePlace(text)
	if err != nil {
		return err
	}
	f.claims.list = append(f.claims.list, typedClaim{at: at, amounts: map[string]string{}})
	return nil
}

// String is empty: there is no default.
func (f atFlag) String() string { return "" }

// Type is shown in help texts.
func (f atFlag) Type() string { return "TREE:node/path" }

// amountFlag adds to the claim that was begun last.
type amountFlag struct {
	claims *claims
}

// Set adds an amount to the last claim.
func (f amountFlag) Set(text string) error {
	resource, quantity, err := pair(text)
	if err != nil {
		return err
	}
	if len(f.claims.list) == 0 {
		return usagef("--amount %s belongs to no place: put --at TREE:node/path before it", text)
	}
	last := f.claims.list[len(f.claims.list)-1]
	if _, again := last.amounts[resource]; again {
		return usagef("--at %s has two amounts of %q", last.at, resource)
	}
	last.amounts[resource] = quantity
	return nil
}

// String is empty: there is no default.
func (f amountFlag) String() string { return "" }

// Type is shown in help texts.
func (f amountFlag) Type() string { return "RESOURCE=AMOUNT" }

// check says what a person forgot, before any server is asked.
func (c *claims) check() error {
	if len(c.list) == 0 {
		return usagef("say what to hold, and where: --at TREE:node/path --amount RESOURCE=AMOUNT, or --item RESOURCE")
	}
	for _, claim := range c.list {
		if len(claim.amounts)+len(claim.picks) == 0 {
			return usagef("--at %s asks for nothing: put --amount RESOURCE=AMOUNT or --item RESOURCE after it", claim.at)
		}
	}
	return nil
}

// messages reads the amounts by the units of their trees.
func (c *claims) messages(known units) ([]*quoratev1.Claim, error) {
	var messages []*quoratev1.Claim
	for _, claim := range c.list {
		message, err := claim.message(known)
		if err != nil {
			return nil, err
		}
		messages = append(messages, message)
	}
	return messages, nil
}

func (c typedClaim) message(known units) (*quoratev1.Claim, error) {
	message := &quoratev1.Claim{Tree: c.at.tree, Node: c.at.node, Items: c.picks}
	for resource, text := range c.amounts {
		unit, err := known.of(c.at.tree, resource)
		if err != nil {
			return nil, err
		}
		if unit == quoratev1.Unit_UNIT_ITEMS {
			return nil, usagef("--at %s: %s is made of items: write --item %s=%s", c.at, resource, resource, text)
		}
		amount, err := manifest.ParseQuantity(text, unit)
		if err != nil {
			return nil, usagef("--at %s, amount of %q: %v", c.at, resource, err)
		}
		if message.Amounts == nil {
			message.Amounts = map[string]int64{}
		}
		message.Amounts[resource] = amount
	}
	return message, nil
}

// labelPairs reads --label name=value flags.
func labelPairs(list []string) (map[string]string, error) { return pairs("--label", list) }

// pairs reads name=value flags, each name once.
func pairs(flag string, list []string) (map[string]string, error) {
	read := map[string]string{}
	for _, text := range list {
		name, value, err := pair(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		if _, again := read[name]; again {
			return nil, usagef("%s %q is given twice", flag, name)
		}
		read[name] = value
	}
	return read, nil
}
