package quota

// strict is CERN's nested quotas (seed 002): a new child starts at zero, the children's limits add up to at most their
// parent's, a limit may go below usage, and unknown nodes are refused.
var strict = Switches{PolicyName: "strict", UnsetIs: AtMost(0), Sum: SumWithinLimit, SetBy: SetByParent}
