package quota

// check refuses settings of a tree that cannot be.
func (s TreeSettings) check(tree, field string) *Error {
	if err := s.Leases.check(tree, field+".leases"); err != nil {
		return err
	}
	if s.Overtake < 0 || s.Overtake > MaxOvertake {
		return refuse(Invalid, field+".overtake_ms", "the first in a line of tree %s may be overtaken for 1 to %d ms, not %d; 0 means %d", tree, MaxOvertake, s.Overtake, DefaultOvertake)
	}
	return nil
}

func (s LeaseSettings) check(tree, field string) *Error {
	switch {
	case s.Max < 0 || s.Max > MaxTTL:
		return refuse(Invalid, field+".max_ttl_ms", "leases in tree %s may last 1 to %d ms without a renewal, not %d; 0 means %d", tree, MaxTTL, s.Max, MaxTTL)
	case s.Default < 0 || s.Default > s.most():
		return refuse(Invalid, field+".default_ttl_ms", "the default of leases in tree %s is %d ms; 1 to %d are allowed, and 0 for none", tree, s.Default, s.most())
	case s.Grace < 0 || s.Grace > MaxGrace:
		return refuse(Invalid, field+".grace_ms", "the grace of leases in tree %s is %d ms; 1 to %d are allowed, and 0 for none", tree, s.Grace, MaxGrace)
	}
	return nil
}

// checkQueueing refuses what is not in the list.
func checkQueueing(q Queueing, field string) *Error {
	if q > BestEffort {
		return refuse(Invalid, field, "queueing %d is unknown; it is strict or best-effort, or inherited", q)
	}
	return nil
}
