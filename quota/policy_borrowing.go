package quota

// borrowing is the quota manager of the Multi-Cluster App Dispatcher (seed 004): claims are made at leaves and counted
// there or, while a leaf is full, further up; who claims the share of his own node gets it back from whoever borrows it,
// and a higher priority pushes out a lower one. An unset limit is zero.
var borrowing = Switches{
	PolicyName: "borrowing", UnsetIs: AtMost(0), AtLeavesOnly: true, Borrow: BorrowSoftly, Preempt: PreemptLower | PreemptBorrowers,
}
