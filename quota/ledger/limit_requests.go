package ledger

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/quorate/quorate/quota"
)

// limitRequests are the open requests for limits and the newest closed ones. There are few, so lists are searched.
type limitRequests struct {
	*environment
	deadlines *deadlines
	// last is the number of the newest request, closedSeq the place of the request that was closed last.
	last, closedSeq uint64
	// all are sorted by number.
	all []*quota.LimitRequest
	// changed has the index of the last log entry that changed a request, by number, as nodeMark has for a node;
	// newest is the highest of them.
	changed map[uint64]uint64
	newest  uint64
}

// place is the index of a request, or where it would be.
func (s *limitRequests) place(number uint64) (int, bool) {
	return slices.BinarySearchFunc(s.all, number,
		func(r *quota.LimitRequest, number uint64) int { return cmp.Compare(r.Number, number) })
}

// find is the request of a number; nil if it is not known.
func (s *limitRequests) find(number uint64) *quota.LimitRequest {
	if i, known := s.place(number); known {
		return s.all[i]
	}
	return nil
}

// countOpen counts the open requests, and those of one user among them.
func (s *limitRequests) countOpen(asker string) (all, own int) {
	for _, r := range s.all {
		if r.State == quota.RequestOpen {
			all++
			if r.Asker == asker {
				own++
			}
		}
	}
	return all, own
}

// findEqual is the request of the same user for the same limits of the same node; nil if there is none. It is open, or
// if the limits are set already, one that a rule approved at once: its answer may have been lost.
func (s *limitRequests) findEqual(as *quota.LimitRequest, isSet bool) *quota.LimitRequest {
	for _, r := range slices.Backward(s.all) {
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

// add stores a new request, which has the next number.
func (s *limitRequests) add(r *quota.LimitRequest) {
	s.last = r.Number
	s.all = append(s.all, r)
	s.deadlines.set(dueKey{dueRequest, r.Number}, r.Ends)
	s.mark(r)
}

// replace stores another version of a known request.
func (s *limitRequests) replace(r *quota.LimitRequest) {
	i, _ := s.place(r.Number)
	s.all[i] = r
	s.mark(r)
}

// mark notes that the present entry changes a request.
func (s *limitRequests) mark(r *quota.LimitRequest) {
	s.changed[r.Number], s.newest = s.index, max(s.newest, s.index)
}

// close ends an open request and returns its new version. by is empty if no user ends it.
func (s *limitRequests) close(r *quota.LimitRequest, state quota.RequestState, by, reason string) *quota.LimitRequest {
	s.closedSeq++
	closed := *r
	closed.State, closed.Closed, closed.ClosedBy, closed.ClosedReason = state, s.now, by, reason
	closed.ClosedSeq = s.closedSeq
	s.replace(&closed)
	s.deadlines.drop(dueKey{dueRequest, r.Number})
	s.forgetClosed()
	return &closed
}

// closeAll makes all open requests stale.
func (s *limitRequests) closeAll(reason string) {
	for _, r := range slices.Clone(s.all) {
		if r.State == quota.RequestOpen {
			s.close(r, quota.RequestStale, "", reason)
		}
	}
}

// forgetClosed forgets a closed request if too many are remembered: of the user with most of them the one that was
// closed first. Otherwise one user, who asks and withdraws again and again, would remove those of all others.
func (s *limitRequests) forgetClosed() {
	closed, most, ofUser := 0, 0, map[string]int{}
	for _, r := range s.all {
		if r.State != quota.RequestOpen {
			closed++
			ofUser[r.Asker]++
			most = max(most, ofUser[r.Asker])
		}
	}
	if closed <= s.bounds.ClosedRequests {
		return
	}
	oldest := -1
	for i, r := range s.all {
		isOfMost := ofUser[r.Asker] == most
		if r.State != quota.RequestOpen && isOfMost && (oldest < 0 || r.ClosedSeq < s.all[oldest].ClosedSeq) {
			oldest = i
		}
	}
	delete(s.changed, s.all[oldest].Number)
	s.all = slices.Delete(slices.Clone(s.all), oldest, oldest+1)
}

// requestDigest identifies what an approval is about: the request, and the limits in force that it would change. A
// request never changes and its number is not used again, so the hash need not resist those who look for collisions.
func requestDigest(r *quota.LimitRequest, present []quota.ResourceLimit) string {
	text := fmt.Appendf(nil, "%d %q %q %d %q %q %d\n", r.Number, r.Tree, r.Node, r.NodeID, r.Asker, r.Reason, r.Ends)
	for i, wanted := range r.Limits {
		text = fmt.Appendf(text, "%q %s %s\n", wanted.Resource, wanted.Limit, present[i].Limit)
	}
	h := fnv.New128a()
	h.Write(text)
	return fmt.Sprintf("%x", h.Sum(nil))
}
