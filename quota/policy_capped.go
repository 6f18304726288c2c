package quota

// capped is Keystone's strict two-level model at any depth: a limit is at most its parent's, siblings may overbook, an
// unset one is bounded by the parent alone or by a default from above, and unknown nodes are refused.
var capped = Switches{PolicyName: "capped", UnsetIs: NoLimit(), ChildWithinParent: true}

// project is capped for projects that are not configured one by one, as Keystone's registered limits have it: a claim at
// an unknown node brings it along, with the defaults.
var project = Switches{PolicyName: "project", UnsetIs: NoLimit(), ChildWithinParent: true, ForUnknown: MakeUnknown}
