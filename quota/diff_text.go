package quota

// policyText is the policy as configured; a new node that inherits is no change.
func policyText(s *NodeSpec, there bool) string {
	if there && s.Policy == "" && s.Path == "" {
		return DefaultPolicy
	}
	return s.Policy
}

func (d *differ) limits(path, kind string, before, after []ResourceLimit) {
	merge(before, after, func(l ResourceLimit) string { return l.Resource }, func(name string, was, is *ResourceLimit) {
		d.add(path, kind+name, limitText(was), limitText(is))
	})
}

func limitText(l *ResourceLimit) string {
	if l == nil {
		return ""
	}
	return l.Limit.String()
}

func (d *differ) labels(path string, before, after []Label) {
	merge(before, after, func(l Label) string { return l.Key }, func(key string, was, is *Label) {
		d.add(path, "label "+key, labelText(was), labelText(is))
	})
}

// labelText quotes the value, so that an empty one is not taken for absent.
func labelText(l *Label) string {
	if l == nil {
		return ""
	}
	return `"` + l.Value + `"`
}

// switchText is absent for what is off.
func switchText(on bool) string {
	if on {
		return "on"
	}
	return ""
}
