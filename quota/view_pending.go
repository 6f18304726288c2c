package quota

// Principals are up to max users or groups of a tree by name.
func (v View) Principals(string, HolderKind, string, string, int) ([]PrincipalUsage, bool, *Error) {
	return nil, false, nil
}
