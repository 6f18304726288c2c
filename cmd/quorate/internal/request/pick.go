package request

import (
	"slices"
	"strconv"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// MaxItems is the largest number of items of one resource in a request.
const MaxItems = 1000

// itemFlag is --item, which adds items to the last claim.
type itemFlag struct {
	claims *Claims
}

// Set adds items to the last claim.
func (f itemFlag) Set(text string) error {
	pick, err := parsePick(text)
	if err != nil {
		return err
	}
	if len(f.claims.List) == 0 {
		return cli.Usagef("--item %s has no node: put --at TREE[:node/path] before it", text)
	}
	last := &f.claims.List[len(f.claims.List)-1]
	last.Picks = append(last.Picks, pick)
	return nil
}

// String is empty: there is no default.
func (f itemFlag) String() string { return "" }

// Type is shown in help texts.
func (f itemFlag) Type() string { return "RESOURCE[@STATE][=COUNT|:NAME,...]" }

// parsePick parses requested items: RESOURCE for one free item, RESOURCE=3 for several, RESOURCE@STATE for items in
// another state, RESOURCE:NAME,NAME for named items.
func parsePick(text string) (*quoratev1.ItemPick, error) {
	end := strings.IndexAny(text, "=:")
	if end < 0 {
		end = len(text)
	}
	resourceText, choice := text[:end], text[end:]
	resource, state, stated := strings.Cut(resourceText, "@")
	if resource == "" || stated && state == "" {
		return nil, cli.Usagef("%q does not name items: write RESOURCE, RESOURCE=COUNT, RESOURCE:NAME,NAME, or "+
			"RESOURCE@STATE and the same", text)
	}
	pick := &quoratev1.ItemPick{Resource: resource, State: state, Count: 1}
	switch {
	case strings.HasPrefix(choice, "="):
		count, err := strconv.ParseInt(choice[1:], 10, 64)
		if err != nil || count < 1 || count > MaxItems {
			return nil, cli.Usagef("%q asks for %q items: write a number from 1 to %d, or names after a colon", text,
				choice[1:], MaxItems)
		}
		pick.Count = count
	case strings.HasPrefix(choice, ":"):
		pick.Names = strings.Split(choice[1:], ",")
		if slices.Contains(pick.GetNames(), "") {
			return nil, cli.Usagef("%q names an item without a name: write RESOURCE:NAME,NAME", text)
		}
		pick.Count = int64(len(pick.GetNames()))
	}
	return pick, nil
}
