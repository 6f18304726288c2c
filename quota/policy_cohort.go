package quota

// cohort is Kueue's cohorts: a node may hold more than its limit, as far as its own bound and what others lend allow. An
// unset limit is zero, so that such a node lives on what is lent; unset bounds are none. Nobody is preempted.
var cohort = Switches{PolicyName: "cohort", UnsetIs: AtMost(0), Borrow: BorrowBounded}
