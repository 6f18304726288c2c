package quota

// nested is Nova's nested quota: a new child starts at zero, and what a node holds itself counts against what it may give
// to its children.
var nested = Switches{PolicyName: "nested", UnsetIs: AtMost(0), Sum: SumWithinLimitLessOwn, SetBy: SetByParent}
