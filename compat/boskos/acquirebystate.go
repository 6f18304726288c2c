package boskos

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// acquireByState takes all of the names or none, in one step.
func (s *server) acquireByState(r *http.Request) ([]byte, error) {
	q := r.URL.Query()
	state, dest, owner, names := q.Get("state"), q.Get("dest"), q.Get("owner"), q.Get("names")
	if state == "" || dest == "" || owner == "" || names == "" {
		return nil, badRequest("state: %v, dest: %v, owner: %v, names: %v - all of them must be set in the request.",
			state, dest, owner, names)
	}
	wanted := strings.Split(names, ",")
	slices.Sort(wanted)
	resources, err := s.acquireNames(r.Context(), state, dest, owner, slices.Compact(wanted))
	if err != nil {
		return nil, wrapAnswer(err, "AcquireByState")
	}
	body, err := json.Marshal(resources)
	return append(body, '\n'), err
}

func (s *server) acquireNames(
	ctx context.Context, state, dest, owner string, names []string,
) (resources []*resource, err error) {
	err = s.layout.withLayout(ctx, func(l *layout) error {
		items, err := s.freeItems(ctx, l, state, names)
		if err != nil {
			return err
		}
		granted, err := s.api.Allocations.Allocate(ctx, &quoratev1.AllocateRequest{
			Namespace: namespace, Id: newID(manyPrefix), Mode: quoratev1.Mode_MODE_REJECT,
			Principal: &quoratev1.Principal{User: owner},
			Claims:    l.tenantOf(owner).claimsFor(picksOf(items, state, dest)),
		})
		resources = inOrder(resourcesOf(granted.GetAllocation()), items)
		return err
	})
	if isDenial(err) || isUnknown(err) {
		return nil, notAvailable(state)
	}
	return resources, err
}

// inOrder brings what was granted into the order of the items before, and adds when they would go.
func inOrder(resources []*resource, items []*quoratev1.Item) []*resource {
	order := map[string]int{}
	for i, item := range items {
		order[item.GetName().GetName()] = i
	}
	slices.SortFunc(resources, func(a, b *resource) int { return cmp.Compare(order[a.Name], order[b.Name]) })
	for _, r := range resources {
		r.noteExpiry(items[order[r.Name]])
	}
	return resources
}

// freeItems finds all of the names in a state, those first that were left alone for longest.
func (s *server) freeItems(ctx context.Context, l *layout, state string, names []string) ([]*quoratev1.Item, error) {
	var items []*quoratev1.Item
	for _, name := range names {
		found, err := s.itemsNamed(ctx, l, name)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(found, func(i *quoratev1.Item) bool {
			return i.GetAllocation() == nil && i.GetState() == state
		})
		if at < 0 {
			return nil, errUnknown
		}
		items = append(items, found[at])
	}
	slices.SortStableFunc(items, func(a, b *quoratev1.Item) int {
		return cmp.Compare(a.GetUpdatedLedgerMs(), b.GetUpdatedLedgerMs())
	})
	return items, nil
}

func picksOf(items []*quoratev1.Item, state, dest string) map[string][]*quoratev1.ItemPick {
	picks := map[string][]*quoratev1.ItemPick{}
	for _, item := range items {
		tree, rtype := item.GetName().GetTree(), item.GetName().GetResource()
		at := slices.IndexFunc(picks[tree], func(p *quoratev1.ItemPick) bool { return p.GetResource() == rtype })
		if at < 0 {
			at = len(picks[tree])
			picks[tree] = append(picks[tree], &quoratev1.ItemPick{Resource: rtype, State: state, HeldState: dest})
		}
		picks[tree][at].Names = append(picks[tree][at].Names, item.GetName().GetName())
	}
	return picks
}
