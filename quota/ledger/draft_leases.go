package ledger

import "github.com/quorate/quorate/quota"

// checkTreeSettings refuses settings of a tree that cannot be.
func checkTreeSettings(s quota.TreeSettings, tree, field string) *quota.Error {
	if err := checkLeaseSettings(s.Leases, tree, field+".leases"); err != nil {
		return err
	}
	if s.Overtake < 0 || s.Overtake > quota.MaxOvertake {
		return quota.Errorf(quota.Invalid, field+".overtake_ms", "the first in a line of tree %s may be overtaken for 1 to %d ms, not %d; 0 means %d", tree, quota.MaxOvertake, s.Overtake, quota.DefaultOvertake)
	}
	return nil
}

func checkLeaseSettings(s quota.LeaseSettings, tree, field string) *quota.Error {
	switch {
	case s.Max < 0 || s.Max > quota.MaxTTL:
		return quota.Errorf(quota.Invalid, field+".max_ttl_ms", "leases in tree %s may last 1 to %d ms without a renewal, not %d; 0 means %d", tree, quota.MaxTTL, s.Max, quota.MaxTTL)
	case s.Default < 0 || s.Default > maxLeaseTTL(s):
		return quota.Errorf(quota.Invalid, field+".default_ttl_ms", "the default of leases in tree %s is %d ms; 1 to %d are allowed, and 0 for none", tree, s.Default, maxLeaseTTL(s))
	case s.Grace < 0 || s.Grace > quota.MaxGrace:
		return quota.Errorf(quota.Invalid, field+".grace_ms", "the grace of leases in tree %s is %d ms; 1 to %d are allowed, and 0 for none", tree, s.Grace, quota.MaxGrace)
	}
	return nil
}

// checkQueueing refuses what is not in the list.
func checkQueueing(q quota.Queueing, field string) *quota.Error {
	if q > quota.BestEffort {
		return quota.Errorf(quota.Invalid, field, "queueing %d is unknown; it is strict or best-effort, or inherited", q)
	}
	return nil
}
