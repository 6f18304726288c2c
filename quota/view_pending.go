package quota

// Explain decides a request like a dry run, and for a denial says what would admit it.
func (v View) Explain(request Allocate) Outcome { return v.DryRun(request) }

// ExplainID shows how the request of an id was decided.
func (v View) ExplainID(id string) (Decision, *AllocationInfo, *Stamp, *Error) {
	info, unknown := v.Allocation(id)
	if unknown != nil {
		return Decision{}, nil, nil, unknown
	}
	return Decision{Granted: true}, &info, nil, nil
}

// Principals are up to max users or groups of a tree by name.
func (v View) Principals(string, HolderKind, string, string, int) ([]PrincipalUsage, bool, *Error) {
	return nil, false, nil
}
