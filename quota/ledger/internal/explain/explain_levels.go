package explain

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// maxCheckedLevels bounds the nodes times resources, and the items, that the levels of one explanation are of. Each has
// at most a limit of its own, a bound of borrowing, and limits of a user and a group.
const maxCheckedLevels = 500

// Explained is the outcome of a request that was asked about, with the limits that it passes or that stop it.
type Explained struct {
	state.Outcome
	// Levels are those of the list of claims that is granted, or of all lists if none is: claims in the order of the
	// request, levels from the claimed node up to the root, each node once; at a node its own limits by resource, then
	// those of the user, of its group, and of applications; items last. An exceeded one has a violation in the decision.
	// There are none for a request that was carried out before.
	Levels []quota.LevelCheck
	// LevelsCut is true if there are more levels than an explanation has.
	LevelsCut bool
}

type levelPage struct {
	List []quota.LevelCheck
	left int // of maxCheckedLevels
	Cut  bool
}

// LevelsOf are the levels of a new request that is decided so.
func LevelsOf(s *state.State, c quota.Allocate, d *quota.Decision) levelPage {
	page := levelPage{left: maxCheckedLevels}
	if d.Granted {
		c = withPlacedAmounts(c, d)
	}
	for number := range max(1, len(c.AnyOf)) {
		if len(c.AnyOf) > 0 {
			if number++; d.Granted && number != d.Alternative {
				continue
			}
		}
		place := func() (*state.Allocation, *quota.Error) { return admit.PlaceClaims(s, &c) }
		if number > 0 {
			place = func() (*state.Allocation, *quota.Error) { return admit.PlaceList(s, &c, number, 0) }
		}
		a, refused := place()
		if refused != nil {
			continue // no limit stops the list, but a bound of the ledger
		}
		admit.Begin(s, a)
		v := levelSurvey{state: s, allocation: a, decision: d, number: number, page: &page}
		v.survey()
	}
	return page
}

// withPlacedAmounts is a request for what is given of its ranges.
func withPlacedAmounts(c quota.Allocate, d *quota.Decision) quota.Allocate {
	list := c.Claims
	if d.Alternative > 0 {
		list = c.AnyOf[d.Alternative-1]
	}
	list = slices.Clone(list)
	for i := range list {
		list[i].Amounts, list[i].Ranges = d.Placements[i].Amounts, nil
	}
	if d.Alternative == 0 {
		c.Claims = list
		return c
	}
	c.AnyOf = slices.Clone(c.AnyOf)
	c.AnyOf[d.Alternative-1] = list
	return c
}
