package cli

import (
	"cmp"
	"strconv"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// ViolationText writes one limit that blocks a request, or the requests that come before it, and for which of its
// alternatives.
func (u Units) ViolationText(v *quoratev1.Violation) string {
	if number := v.GetAlternative(); number > 0 {
		return AlternativeText(number) + ": " + u.blockerText(v)
	}
	return u.blockerText(v)
}

// AlternativeText names an alternative of a request by its number.
func AlternativeText(number int32) string { return "alternative " + strconv.Itoa(int(number)) }

func (u Units) blockerText(v *quoratev1.Violation) string {
	at := Place{v.GetTree(), v.GetNode()}.String()
	if v.GetSeen() == quoratev1.TenantsSee_TENANTS_SEE_NOTHING {
		at = "a level above in " + v.GetTree()
	}
	if v.GetKind() == quoratev1.ViolationKind_VIOLATION_KIND_CORDON {
		return at + "  cordoned" + reasonClause(v.GetReason()) + ": nothing new is admitted there and below"
	}
	isWhole := v.Seen == nil
	if v.GetKind() == quoratev1.ViolationKind_VIOLATION_KIND_QUEUE {
		ahead := "1 request comes first"
		switch {
		case !isWhole:
			ahead = "other requests come first"
		case v.GetUsed() != 1:
			ahead = strconv.FormatInt(v.GetUsed(), 10) + " requests come first"
		}
		return at + "  " + cmp.Or(LimitText(v), "everything") + ": " + ahead
	}
	amount := func(n int64) string { return u.FormatAmount(v.GetTree(), v.GetResource(), n) }
	numbers := "requested " + amount(v.GetRequested()) + ", missing " + amount(v.GetMissing())
	if isWhole {
		numbers = "limit " + amount(v.GetLimit()) + ", used " + amount(v.GetUsed()) + ", " + numbers
	}
	return at + "  " + LimitText(v) + ": " + numbers
}

func reasonClause(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

// LimitText names the holder and the resource of a limit, for example "user ann, cores".
func LimitText(l limitOf) string {
	what := l.GetResource() + itemOf(l)
	switch l.GetKind() {
	case quoratev1.ViolationKind_VIOLATION_KIND_APPLICATIONS:
		what = "applications"
	case quoratev1.ViolationKind_VIOLATION_KIND_BORROWING:
		what = "borrowed " + what
	case quoratev1.ViolationKind_VIOLATION_KIND_UNSPECIFIED, quoratev1.ViolationKind_VIOLATION_KIND_RESOURCE,
		quoratev1.ViolationKind_VIOLATION_KIND_ITEMS,
		quoratev1.ViolationKind_VIOLATION_KIND_QUEUE, quoratev1.ViolationKind_VIOLATION_KIND_CORDON:
	}
	switch l.GetHolderKind() {
	case quoratev1.HolderKind_HOLDER_KIND_USER:
		return "user " + l.GetHolder() + ", " + what
	case quoratev1.HolderKind_HOLDER_KIND_GROUP:
		return "group " + l.GetHolder() + ", " + what
	case quoratev1.HolderKind_HOLDER_KIND_UNSPECIFIED, quoratev1.HolderKind_HOLDER_KIND_NODE:
	}
	return what
}

// limitOf is what violations, raises and overuses have in common.
type limitOf interface {
	GetKind() quoratev1.ViolationKind
	GetHolderKind() quoratev1.HolderKind
	GetHolder() string
	GetResource() string
}

// itemOf is the state or the name of requested items, in brackets; raises have none.
func itemOf(l limitOf) string {
	if v, ok := l.(interface{ GetItem() string }); ok && v.GetItem() != "" {
		return " (" + v.GetItem() + ")"
	}
	return ""
}
