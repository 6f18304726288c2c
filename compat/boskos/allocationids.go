package boskos

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/google/uuid"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

const (
	// onePrefix begins the ids of allocations that hold one item and nothing else of Boskos's, manyPrefix the others.
	onePrefix  = "boskos/"
	manyPrefix = "boskos-names/"
)

// namespace has the ids of all clients of Boskos, with any credential: they share request ids, and the items that
// one of them has acquired another one may release. No other caller of the API has it by default.
const namespace = "frontend/boskos"

// errNotOne means a bug of the server, or of a caller that used the id of such a request for another one.
var errNotOne = errors.New("the allocation does not hold one item")

// newID returns an id that is not in use.
func newID(prefix string) string { return prefix + uuid.NewString() }

// allocationIDs are the ids of the consecutive allocations of one request id: when an allocation has ended, the same
// request id is a new request. The first allocation is number 0.
//
// The ledger forgets an ended id after ten minutes. A request id that is used after that begins at number 0 again; if a
// later allocation is still held, the request gets a second item, as in the original. No known client uses a request id
// twice.
type allocationIDs struct{ base string }

// newAllocationIDs derives the ids from the content of the request, without the state that the item is to get: as in
// the original, a request keeps its place in the queue if it is repeated with another one (see allocateOrJoin).
func newAllocationIDs(a acquisition, r *quoratev1.AllocateRequest) allocationIDs {
	hash := sha256.New()
	parts := []string{a.requestID, a.rtype, a.state, a.owner}
	for _, claim := range r.GetClaims() {
		parts = append(parts, claim.GetTree(), claim.GetNode())
	}
	for _, part := range parts {
		_, _ = fmt.Fprintf(hash, "%d:%s", len(part), part) // a hash takes everything
	}
	return allocationIDs{onePrefix + hex.EncodeToString(hash.Sum(nil)[:16])}
}

func (l allocationIDs) idOf(n int) string { return fmt.Sprintf("%s/%d", l.base, n) }

// firstUnended returns the first allocation after n that has not ended. Allocation n has ended. Each allocation begins
// after the one before has ended, so a binary search finds it.
func (l allocationIDs) firstUnended(n int, ended func(n int) (bool, error)) (int, error) {
	last, next := n, n+1
	for step := 1; ; step *= 2 {
		over, err := ended(next)
		if err != nil {
			return 0, err
		}
		if !over {
			break
		}
		last, next = next, next+step
	}
	for next-last > 1 {
		middle := last + (next-last)/2
		over, err := ended(middle)
		if err != nil {
			return 0, err
		}
		if over {
			last = middle
		} else {
			next = middle
		}
	}
	return next, nil
}

// hasEnded reports whether the allocation of an id has ended; an unknown one has not.
func (s *server) hasEnded(ctx context.Context, id string) (bool, error) {
	found, err := s.api.Allocations.GetAllocation(ctx, &quoratev1.GetAllocationRequest{Namespace: namespace, Id: id})
	if isUnknown(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	state := found.GetAllocation().GetState()
	return state != quoratev1.AllocationState_ALLOCATION_STATE_HELD &&
		state != quoratev1.AllocationState_ALLOCATION_STATE_WAITING, nil
}
