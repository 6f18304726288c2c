package state

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/quorate/quorate/quota"
)

// LimitRequests are the open requests for limits and the newest closed ones. There are few, so lists are searched.
type LimitRequests struct {
	*Environment
	Deadlines *deadlines
	// Last is the number of the newest request, ClosedSeq the place of the request that was closed last.
	Last, ClosedSeq uint64
	// All are sorted by number.
	All []*quota.LimitRequest
	// Changed has the index of the last log entry that changed a request, by number, as nodeMark has for a node;
	// newest is the highest of them.
	Changed map[uint64]uint64
	Newest  uint64
}

// place is the index of a request, or where it would be.
func (s *LimitRequests) place(number uint64) (int, bool) {
	return slices.BinarySearchFunc(s.All, number,
		func(r *quota.LimitRequest, number uint64) int { return cmp.Compare(r.Number, number) })
}

// Find is the request of a number; nil if it is not known.
func (s *LimitRequests) Find(number uint64) *quota.LimitRequest {
	if i, known := s.place(number); known {
		return s.All[i]
	}
	return nil
}

// CountOpen counts the open requests, and those of one user among them.
func (s *LimitRequests) CountOpen(asker string) (all, own int) {
	for _, r := range s.All {
		if r.State == quota.RequestOpen {
			all++
			if r.Asker == asker {
				own++
			}
		}
	}
	return all, own
}

// FindEqual is the request of the same user for the same limits of the same node; nil if there is none. It is open, or
// if the limits are set already, one that a rule approved at once: its answer may have been lost.
func (s *LimitRequests) FindEqual(as *quota.LimitRequest, isSet bool) *quota.LimitRequest {
	for _, r := range slices.Backward(s.All) {
		answers := r.State == quota.RequestOpen
		if isSet {
			answers = r.State == quota.RequestApplied && r.ClosedBy == quota.AutoApprover
		}
		if answers && r.Asker == as.Asker && r.Tree == as.Tree && r.NodeID == as.NodeID &&
			r.Node == as.Node && r.Reason == as.Reason && slices.Equal(r.Limits, as.Limits) {
			return r
		}
	}
	return nil
}

// Add stores a new request, which has the next number.
func (s *LimitRequests) Add(r *quota.LimitRequest) {
	s.Last = r.Number
	s.All = append(s.All, r)
	s.Deadlines.Set(DueKey{DueRequest, r.Number}, r.Ends)
	s.mark(r)
}

// Replace stores another version of a known request.
func (s *LimitRequests) Replace(r *quota.LimitRequest) {
	i, _ := s.place(r.Number)
	s.All[i] = r
	s.mark(r)
}

// mark notes that the present entry changes a request.
func (s *LimitRequests) mark(r *quota.LimitRequest) {
	s.Changed[r.Number], s.Newest = s.Index, max(s.Newest, s.Index)
}

// Close ends an open request and returns its new version. closedBy is empty if no user ends it.
func (s *LimitRequests) Close(r *quota.LimitRequest, state quota.RequestState, closedBy, reason string,
) *quota.LimitRequest {
	s.ClosedSeq++
	closed := *r
	closed.State, closed.Closed, closed.ClosedBy, closed.ClosedReason = state, s.Now, closedBy, reason
	closed.ClosedSeq = s.ClosedSeq
	s.Replace(&closed)
	s.Deadlines.Drop(DueKey{DueRequest, r.Number})
	s.forgetClosed()
	return &closed
}

// CloseAll makes all open requests stale.
func (s *LimitRequests) CloseAll(reason string) {
	for _, r := range slices.Clone(s.All) {
		if r.State == quota.RequestOpen {
			s.Close(r, quota.RequestStale, "", reason)
		}
	}
}

// forgetClosed forgets a closed request if too many are remembered: of the user with most of them the one that was
// closed first. Otherwise one user, who asks and withdraws again and again, would remove those of all others.
func (s *LimitRequests) forgetClosed() {
	closed, most, ofUser := 0, 0, map[string]int{}
	for _, r := range s.All {
		if r.State != quota.RequestOpen {
			closed++
			ofUser[r.Asker]++
			most = max(most, ofUser[r.Asker])
		}
	}
	if closed <= s.Bounds.ClosedRequests {
		return
	}
	oldest := -1
	for i, r := range s.All {
		isOfMost := ofUser[r.Asker] == most
		if r.State != quota.RequestOpen && isOfMost && (oldest < 0 || r.ClosedSeq < s.All[oldest].ClosedSeq) {
			oldest = i
		}
	}
	delete(s.Changed, s.All[oldest].Number)
	s.All = slices.Delete(slices.Clone(s.All), oldest, oldest+1)
}

// RequestDigest identifies what an approval is about: the request, and the limits in force that it would change. A
// request never changes and its number is not used again, so the hash need not resist those who look for collisions.
func RequestDigest(r *quota.LimitRequest, present []quota.ResourceLimit) string {
	text := fmt.Appendf(nil, "%d %q %q %d %q %q %d\n", r.Number, r.Tree, r.Node, r.NodeID, r.Asker, r.Reason, r.Ends)
	for i, wanted := range r.Limits {
		text = fmt.Appendf(text, "%q %s %s\n", wanted.Resource, wanted.Limit, present[i].Limit)
	}
	h := fnv.New128a()
	h.Write(text)
	return fmt.Sprintf("%x", h.Sum(nil))
}
