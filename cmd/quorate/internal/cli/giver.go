package cli

import (
	"cmp"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// GiverOf says what stands for an unset limit: the policy, or the default of a node, which is not named if it is hidden
// from the caller.
func GiverOf(r *quoratev1.ResourceUsage) string {
	switch {
	case r.DefaultNode != nil:
		return "default of " + cmp.Or(r.GetDefaultNode(), "the root")
	case r.GetHasDefault():
		return "default"
	}
	return "policy"
}
