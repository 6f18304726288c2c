package quota

// contradiction says which switches cannot be together, or "". It is asked when a policy is registered.
func (s Switches) contradiction() string {
	soft := s.Borrow == BorrowSoftly
	switch {
	case !validName(s.PolicyName):
		return "it needs a name like those of nodes"
	case s.UnsetIs.Kind == Unset:
		return "UnsetIs must say what unset means: NoLimit() or an amount"
	case s.Sum > SumWithinLimitLessOwn || s.ForUnknown > MakeUnknown || s.Borrow > BorrowBounded || s.SetBy > SetByParent ||
		s.Preempt&^(PreemptLower|PreemptBorrowers) != 0:
		return "a switch is set to something outside of its closed list"
	case s.Preempt != PreemptNobody && !soft:
		return "Preempt needs BorrowSoftly: elsewhere nobody is in the way of a claim but limits"
	case s.ForUnknown == MakeUnknown && s.Sum != SumFree:
		return "MakeUnknown needs SumFree: a node that a claim brings along would change a sum of limits that is checked only in configurations"
	case s.ForUnknown == MakeUnknown && s.AtLeavesOnly:
		return "MakeUnknown excludes AtLeavesOnly: a claim below a leaf would make it an inner node, with claims"
	case s.ForUnknown == MakeUnknown && soft:
		return "MakeUnknown excludes BorrowSoftly: a node would vanish while claims are counted above it"
	}
	return ""
}
