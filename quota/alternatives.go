package quota

import "slices"

// MaxAlternatives is the largest number of lists of claims of one request.
const MaxAlternatives = 8

// Lists are the lists of claims of which the request wants one, in order of preference: AnyOf, or else Claims alone.
func (a *Allocate) Lists() [][]Claim {
	if len(a.AnyOf) > 0 {
		return a.AnyOf
	}
	return [][]Claim{a.Claims}
}

// ListCount is the number of Lists.
func (a *Allocate) ListCount() int { return max(1, len(a.AnyOf)) }

// TreeNames are the trees of the claims of all Lists, each once.
func (a *Allocate) TreeNames() []string {
	var names []string
	a.HasClaim(func(c Claim) bool {
		if !slices.Contains(names, c.Tree) {
			names = append(names, c.Tree)
		}
		return false
	})
	return names
}

// HasClaim reports whether f is true for a claim of any of the Lists.
func (a *Allocate) HasClaim(f func(Claim) bool) bool {
	return slices.ContainsFunc(a.Claims, f) ||
		slices.ContainsFunc(a.AnyOf, func(list []Claim) bool { return slices.ContainsFunc(list, f) })
}
