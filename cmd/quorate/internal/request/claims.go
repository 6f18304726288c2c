package request

import (
	"fmt"
	"maps"
	"slices"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// Claims collects --at, --amount and --item in the order of the command line: each amount and item belongs to the node
// before it.
type Claims struct {
	List []TypedClaim
	// PlaceIsOptional lets amounts come before any --at: they belong to a claim without a place.
	PlaceIsOptional bool
	// AmountsAreFixed refuses ranges of amounts.
	AmountsAreFixed bool
	// Scale multiplies all amounts, see scaleFlag; nil for once.
	Scale *scale
	// ors are the lengths of List at which --or began another alternative.
	ors []int
}

// TypedClaim is one claim of the command line.
type TypedClaim struct {
	At      cli.Place
	amounts map[string]string // unparsed, by resource: the units come from the server later; perhaps ranges
	Picks   []*quoratev1.ItemPick
}

type atFlag struct {
	claims *Claims
}

// Set begins a claim at a node.
func (f atFlag) Set(text string) error {
	at, err := cli.ParsePlace(text)
	if err != nil {
		return err
	}
	f.claims.List = append(f.claims.List, TypedClaim{At: at, amounts: map[string]string{}})
	return nil
}

// String is empty: there is no default.
func (f atFlag) String() string { return "" }

// Type is shown in help texts.
func (f atFlag) Type() string { return cli.PlacePlaceholder }

type amountFlag struct {
	claims *Claims
}

// Set adds an amount to the last claim.
func (f amountFlag) Set(text string) error {
	resource, quantity, err := cli.SplitPair(text)
	if err != nil {
		return err
	}
	if f.claims.AmountsAreFixed && isRange(quantity) {
		return cli.Usagef("--amount %s is a range: this command takes one amount", text)
	}
	if len(f.claims.List) == 0 && f.claims.PlaceIsOptional {
		f.claims.List = []TypedClaim{{amounts: map[string]string{}}}
	}
	if len(f.claims.List) == 0 {
		return cli.Usagef("--amount %s has no node: put --at TREE[:node/path] before it", text)
	}
	last := f.claims.List[len(f.claims.List)-1]
	if _, again := last.amounts[resource]; again {
		return cli.Usagef("--at %s has two amounts of %q", last.At, resource)
	}
	last.amounts[resource] = quantity
	return nil
}

// String is empty: there is no default.
func (f amountFlag) String() string { return "" }

// Type is shown in help texts.
func (f amountFlag) Type() string { return "RESOURCE=AMOUNT" }

// orFlag is --or, which ends one alternative and begins the next.
type orFlag struct {
	claims *Claims
}

// Set begins another alternative.
func (f orFlag) Set(string) error {
	n := len(f.claims.List)
	if n == 0 || slices.Contains(f.claims.ors, n) {
		return cli.Usagef("--or has no alternative before it: put --at TREE[:node/path] and its amounts there")
	}
	f.claims.ors = append(f.claims.ors, n)
	return nil
}

// String is empty: there is no default.
func (f orFlag) String() string { return "" }

// Type is that of a flag without a value.
func (f orFlag) Type() string { return "bool" }

// checkClaims finds missing parts before a server is called.
func (c *Claims) checkClaims() error {
	if len(c.List) == 0 {
		return cli.Usagef("name what to allocate, and where: --at TREE[:node/path] --amount RESOURCE=AMOUNT, or --item " +
			"RESOURCE")
	}
	if n := len(c.ors); n > 0 && c.ors[n-1] == len(c.List) {
		return cli.Usagef("the last --or has no alternative after it: put --at TREE[:node/path] there")
	}
	for _, claim := range c.List {
		if len(claim.amounts)+len(claim.Picks) == 0 {
			return cli.Usagef(
				"--at %s asks for nothing: put --amount RESOURCE=AMOUNT or --item RESOURCE after it", claim.At)
		}
	}
	return nil
}

// addTo parses the amounts in the units of their trees.
func (c *Claims) addTo(request *quoratev1.AllocateRequest, known cli.Units) error {
	begin := 0
	for _, end := range append(c.ors[:len(c.ors):len(c.ors)], len(c.List)) {
		claims, err := c.buildMessages(c.List[begin:end], known)
		if err != nil {
			return err
		}
		if begin = end; len(c.ors) == 0 {
			request.Claims = claims
		} else {
			request.AnyOf = append(request.AnyOf, &quoratev1.Alternative{Claims: claims})
		}
	}
	return nil
}

func (c *Claims) buildMessages(list []TypedClaim, known cli.Units) ([]*quoratev1.Claim, error) {
	var messages []*quoratev1.Claim
	for _, claim := range list {
		message, err := claim.buildMessage(known, c.Scale)
		if err != nil {
			return nil, err
		}
		messages = append(messages, message)
	}
	return messages, nil
}

func (c TypedClaim) buildMessage(known cli.Units, factor *scale) (*quoratev1.Claim, error) {
	message := &quoratev1.Claim{Tree: c.At.Tree, Node: c.At.Node, Items: c.Picks}
	if factor != nil && len(c.Picks) > 0 {
		return nil, cli.Usagef("--at %s: --scale multiplies amounts, and items have none; ask for them without --scale", c.At)
	}
	for _, resource := range slices.Sorted(maps.Keys(c.amounts)) {
		text := c.amounts[resource]
		unit, err := known.UnitOf(c.At.Tree, resource)
		if err != nil {
			return nil, err
		}
		if unit == quoratev1.Unit_UNIT_ITEMS {
			return nil, cli.Usagef("--at %s: %s is an itemized resource: write --item %s=%s", c.At,
				resource, resource, text)
		}
		if err := addAmount(message, resource, text, unit, factor); err != nil {
			return nil, cli.Usagef("--at %s, amount of %q: %v", c.At, resource, err)
		}
	}
	return message, nil
}

func addAmount(claim *quoratev1.Claim, resource, text string, unit quoratev1.Unit, factor *scale) error {
	amounts, err := parseAmounts(text, unit, factor)
	switch {
	case err != nil:
		return err
	case amounts.GetStep() == 0:
		if claim.Amounts == nil {
			claim.Amounts = map[string]int64{}
		}
		claim.Amounts[resource] = amounts.GetLeast()
	default:
		amounts.Resource = resource
		claim.Ranges = append(claim.Ranges, amounts)
	}
	return nil
}

func labelPairs(list []string) (map[string]string, error) { return ParsePairs("--label", list) }

// ParsePairs reads name=value flags, each name once.
func ParsePairs(flag string, list []string) (map[string]string, error) {
	read := map[string]string{}
	for _, text := range list {
		name, value, err := cli.SplitPair(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		if _, again := read[name]; again {
			return nil, cli.Usagef("%s %q is given twice", flag, name)
		}
		read[name] = value
	}
	return read, nil
}
