package quota

// LimitKind is the kind of a limit. The numbers are part of the log format.
type LimitKind uint8

// The closed list of kinds.
const (
	// Unset leaves the limit to the node's policy.
	Unset LimitKind = 0
	// Limited allows at most an amount, which may be zero.
	Limited LimitKind = 1
	// Unlimited sets no bound at this node.
	Unlimited LimitKind = 2
	// Advisory sets no bound at this node, as Unlimited, but use beyond its amount is reported. Since feature level 9.
	Advisory LimitKind = 3
)

// Limit is the most that a node's subtree may hold of one resource. Its zero value is unset.
type Limit struct {
	Kind LimitKind
	// Amount is meaningful only if HasAmount.
	Amount Amount
}

// AtMost is a limit of an amount; 0 allows nothing.
func AtMost(a Amount) Limit { return Limit{Kind: Limited, Amount: a} }

// NoLimit is the unlimited limit, which is not the same as an unset one.
func NoLimit() Limit { return Limit{Kind: Unlimited} }

// AdvisoryLimit is a limit that denies nothing: use beyond an amount is reported.
func AdvisoryLimit(a Amount) Limit { return Limit{Kind: Advisory, Amount: a} }

// AdvisoryWord precedes the amount of an advisory limit in texts.
const AdvisoryWord = "advisory:"

// HasAmount is true if the limit has an amount with which use is compared.
func (l Limit) HasAmount() bool { return l.Kind == Limited || l.Kind == Advisory }

// Allows is true if so much fits within the limit. An unset limit must be resolved by its policy first, unless nothing
// is bounded without one, as for numbers of applications.
func (l Limit) Allows(a Amount) bool { return a <= l.Ceiling() }

// String is the limit as text: a number, "advisory:" and a number, "unlimited" or "unset".
func (l Limit) String() string { return l.In(Count) }

// In is the limit as text with the amount in a unit, see [FormatAmount].
func (l Limit) In(unit Unit) string {
	switch l.Kind {
	case Limited:
		return FormatAmount(l.Amount, unit)
	case Advisory:
		return AdvisoryWord + FormatAmount(l.Amount, unit)
	case Unlimited:
		return "unlimited"
	case Unset:
	}
	return "unset"
}

// Ceiling is the largest usage that the limit allows; MaxAmount if it is unlimited or advisory. An unset limit must be
// resolved by its policy first.
func (l Limit) Ceiling() Amount {
	if l.Kind == Limited {
		return l.Amount
	}
	return MaxAmount
}

// ResourceLimit is the limit of one resource.
type ResourceLimit struct {
	Resource string
	Limit    Limit
}
