// Package wire translates between the messages of the API and the types of the domain, and turns refusals and errors
// into answers.
//
// Lists of requests are sorted, because the ledger requires it; [FieldPaths] maps the field of a refusal back to the
// position in the caller's list. errors.go has the one table from refusals and errors to codes: no other place chooses
// a code.
package wire

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

// Wire maps become sorted lists, so that equal requests make equal commands.

// ToAllocate converts a request and sorts its lists as the ledger requires. Here and below, own is the namespace of the
// caller, for ids without one.
func ToAllocate(r *quoratev1.AllocateRequest, own string) quota.Allocate {
	command := quota.Allocate{
		ID: ToID(r, own), Claims: toRequestClaims(r, r.GetClaims()), Labels: ToLabels(r.GetLabels()),
		Principal: toPrincipal(r.GetPrincipal()), Mode: modes[r.GetMode()], ReserveFor: quota.Span(r.GetReserveMs()),
		TTL: quota.Span(r.GetTtlMs()), WaitFor: quota.Span(r.GetWaitMs()), Keep: quota.Span(r.GetKeepMs()),
		Data: ToLabels(r.GetUserData()), For: quota.Span(r.GetForMs()), Priority: r.GetPriority(),
	}
	if command.Mode == quota.Wait && r.WaitMs != nil && r.GetWaitMs() == 0 {
		command.Mode, command.Keep = quota.Hold, 0
	}
	if command.Mode == quota.Reserve && command.ReserveFor == 0 {
		command.ReserveFor = defaultReserve
	}
	for _, alternative := range r.GetAnyOf() {
		command.AnyOf = append(command.AnyOf, toRequestClaims(r, alternative.GetClaims()))
	}
	return command
}

func toRequestClaims(r *quoratev1.AllocateRequest, claims []*quoratev1.Claim) []quota.Claim {
	list := make([]quota.Claim, len(claims))
	for i, c := range claims {
		list[i] = quota.Claim{
			Tree: c.GetTree(), Node: c.GetNode(), Amounts: toVector(c.GetAmounts()), Picks: toPicks(c.GetItems()),
			Standing: toStanding(r, c),
		}
		if len(c.GetRanges()) > 0 {
			addRanges(&list[i], c.GetRanges())
		}
	}
	return list
}

// addRanges adds ranges with their least amounts. A resource that also has a plain amount is then there twice, which
// the ledger refuses.
func addRanges(c *quota.Claim, ranges []*quoratev1.AmountRange) {
	for _, r := range ranges {
		c.Amounts = append(c.Amounts, quota.Component{Resource: r.GetResource(), Amount: quota.Amount(r.GetLeast())})
		c.Ranges = append(c.Ranges, quota.AmountRange{
			Resource: r.GetResource(), Most: quota.Amount(r.GetMost()), Step: quota.Amount(r.GetStep()),
		})
	}
	slices.SortStableFunc(c.Amounts, func(a, b quota.Component) int { return cmp.Compare(a.Resource, b.Resource) })
	slices.SortStableFunc(c.Ranges, func(a, b quota.AmountRange) int { return cmp.Compare(a.Resource, b.Resource) })
}

func fromRanges(list []quota.RangeInfo) []*quoratev1.AmountRange {
	var ranges []*quoratev1.AmountRange
	for _, r := range list {
		ranges = append(ranges, &quoratev1.AmountRange{
			Resource: r.Resource, Least: int64(r.Least), Most: int64(r.Most), Step: int64(r.Step),
		})
	}
	return ranges
}

// defaultReserve is how long a reservation stands whose request does not say it: a minute.
const defaultReserve quota.Span = 60_000

// modes maps the modes. A dry run is not a mode of the ledger: the ledger decides it like a hold and commits nothing.
var modes = map[quoratev1.Mode]quota.Mode{
	quoratev1.Mode_MODE_UNSPECIFIED: quota.Hold,
	quoratev1.Mode_MODE_REJECT:      quota.Hold,
	quoratev1.Mode_MODE_RESERVE:     quota.Reserve,
	quoratev1.Mode_MODE_FORCE:       quota.Force,
	quoratev1.Mode_MODE_WAIT:        quota.Wait,
}

// toStanding starts from the request; the claim overrides it.
func toStanding(r *quoratev1.AllocateRequest, c *quoratev1.Claim) quota.Standing {
	s := quota.Standing{Priority: r.GetPriority(), Type: r.GetPreemptionClass(), Unpreemptable: r.GetUnpreemptable()}
	if c.Priority != nil {
		s.Priority = c.GetPriority()
	}
	if c.PreemptionClass != nil {
		s.Type = c.GetPreemptionClass()
	}
	if c.Unpreemptable != nil {
		s.Unpreemptable = c.GetUnpreemptable()
	}
	return s
}

func toPrincipal(p *quoratev1.Principal) quota.Principal {
	return quota.Principal{User: p.GetUser(), Groups: toSet(p.GetGroups()), Application: p.GetApplication()}
}

// toSet reads names whose order and number mean nothing.
func toSet(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

func toVector(amounts map[string]int64) quota.Vector {
	if len(amounts) == 0 {
		return nil
	}
	vector := make(quota.Vector, 0, len(amounts))
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		vector = append(vector, quota.Component{Resource: name, Amount: quota.Amount(amounts[name])})
	}
	return vector
}

func fromVector(vector quota.Vector) map[string]int64 {
	amounts := make(map[string]int64, len(vector))
	for _, c := range vector {
		amounts[c.Resource] = int64(c.Amount)
	}
	return amounts
}

// ToLabels sorts labels by key.
func ToLabels(labels map[string]string) []quota.Label {
	if len(labels) == 0 {
		return nil
	}
	list := make([]quota.Label, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, quota.Label{Key: key, Value: labels[key]})
	}
	return list
}

func fromLabels(labels []quota.Label) map[string]string {
	if len(labels) == 0 {
		return nil
	}
	wire := make(map[string]string, len(labels))
	for _, l := range labels {
		wire[l.Key] = l.Value
	}
	return wire
}

// ToLimits reads limits by resource. Unset is a value only where a limit can be taken back.
func ToLimits(limits map[string]*quoratev1.Limit, field string, mayUnset bool) ([]quota.ResourceLimit, error) {
	if len(limits) == 0 {
		return nil, nil
	}
	list := make([]quota.ResourceLimit, 0, len(limits))
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		limit, err := toLimit(limits[name], field+"["+strconv.Quote(name)+"]", mayUnset)
		if err != nil {
			return nil, err
		}
		list = append(list, quota.ResourceLimit{Resource: name, Limit: limit})
	}
	return list, nil
}

func toLimit(limit *quoratev1.Limit, field string, mayUnset bool) (quota.Limit, error) {
	switch value := limit.GetValue().(type) {
	case *quoratev1.Limit_Amount:
		return quota.AtMost(quota.Amount(value.Amount)), nil
	case *quoratev1.Limit_Unlimited:
		return quota.NoLimit(), nil
	case *quoratev1.Limit_Advisory:
		return quota.AdvisoryLimit(quota.Amount(value.Advisory)), nil
	case *quoratev1.Limit_Unset:
		if mayUnset {
			return quota.Limit{}, nil
		}
		return quota.Limit{}, InvalidField(field,
			"unset is only for SetLimits; leave the resource out to have no limit of its own here")
	}
	return quota.Limit{}, InvalidField(field, "a limit has one of amount, advisory, unlimited and unset")
}

// FromLimit writes a limit; nil if it is unset.
func FromLimit(limit quota.Limit) *quoratev1.Limit {
	switch limit.Kind {
	case quota.Limited:
		return &quoratev1.Limit{Value: &quoratev1.Limit_Amount{Amount: int64(limit.Amount)}}
	case quota.Unlimited:
		return &quoratev1.Limit{Value: &quoratev1.Limit_Unlimited{Unlimited: true}}
	case quota.Advisory:
		return &quoratev1.Limit{Value: &quoratev1.Limit_Advisory{Advisory: int64(limit.Amount)}}
	case quota.Unset:
	}
	return nil
}

func fromLimits(limits []quota.ResourceLimit) map[string]*quoratev1.Limit {
	wire := make(map[string]*quoratev1.Limit, len(limits))
	for _, l := range limits {
		if limit := FromLimit(l.Limit); limit != nil {
			wire[l.Resource] = limit
		}
	}
	return wire
}

// ToResize converts changes of amounts.
func ToResize(r *quoratev1.ResizeRequest, own string) quota.Resize {
	c := quota.Resize{
		ID: ToID(r, own), Fence: r.GetFence(), Generation: r.GetGeneration(), WaitFor: quota.Span(r.GetWaitMs()),
	}
	for _, change := range r.GetClaims() {
		c.Claims = append(c.Claims, quota.ClaimChange{
			Tree: change.GetTree(), Node: change.GetNode(), Amounts: toVector(change.GetAmounts()),
		})
	}
	return c
}

// ToTransfer converts moves of claims.
func ToTransfer(r *quoratev1.TransferRequest, own string) quota.Transfer {
	c := quota.Transfer{ID: ToID(r, own), Fence: r.GetFence(), Generation: r.GetGeneration()}
	for _, move := range r.GetMoves() {
		c.Moves = append(c.Moves, quota.ClaimMove{Tree: move.GetTree(), From: move.GetNode(), To: move.GetNewNode()})
	}
	return c
}

// ToSplit converts a split. The parts are in the namespace of the allocation.
func ToSplit(r *quoratev1.SplitRequest, own string) quota.Split {
	c := quota.Split{ID: ToID(r, own), Fence: r.GetFence(), Generation: r.GetGeneration()}
	for _, part := range r.GetParts() {
		p := quota.Part{ID: quota.QualifiedID(cmp.Or(r.GetNamespace(), own), part.GetId())}
		for _, claim := range part.GetClaims() {
			p.Claims = append(p.Claims, quota.PartClaim{
				Tree: claim.GetTree(), From: claim.GetNode(), To: claim.GetNewNode(), Amounts: toVector(claim.GetAmounts()),
			})
		}
		c.Parts = append(c.Parts, p)
	}
	return c
}

// ToRelease converts a release.
func ToRelease(r *quoratev1.ReleaseRequest, own string) quota.Release {
	return quota.Release{
		ID: ToID(r, own), Fence: r.GetFence(), Items: ToItemNames(r.GetItems()), ItemState: r.GetItemState(),
	}
}

// ToRenew converts a renewal.
func ToRenew(r *quoratev1.RenewRequest, own string) quota.Renew {
	return quota.Renew{
		ID: ToID(r, own), Fence: r.GetFence(), TTL: quota.Span(r.GetTtlMs()), Data: ToLabels(r.GetUserData()),
		Items: ToItemUpdates(r.GetItems()),
	}
}
