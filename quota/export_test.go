package quota

import "maps"

// Register adds policies as the lines of policy.go do, and answers how to take them away again.
func Register(p ...Policy) (remove func()) {
	before := policies
	policies = maps.Clone(before)
	maps.Copy(policies, registry(p...))
	return func() { policies = before }
}
