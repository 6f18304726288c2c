package quota

// Reasons of denials that are not a kind of violation, see [Decision.DenialReason].
const (
	// ReasonRevocation: leases must be revoked first, and the request does not wait.
	ReasonRevocation = "revocation"
	// ReasonOther: the decision names no limit.
	ReasonOther = "other"
)

// DenialReason says in one word why a request was denied, and in which tree, for counters: the word of its first
// violation, in the order of [Decision.Violations]. A request counts once, however many limits it breaks.
func (d Decision) DenialReason() (tree, reason string) {
	switch {
	case len(d.Violations) > 0:
		return d.Violations[0].Tree, reasonWord(d.Violations[0].Kind)
	case len(d.Preempted) > 0:
		return d.Preempted[0].Tree, ReasonRevocation
	}
	return "", ReasonOther
}

// DenialReasons are all reasons that DenialReason returns.
func DenialReasons() []string {
	list := []string{ReasonRevocation, ReasonOther}
	for kind := OfResource; kind <= OfHold; kind++ {
		list = append(list, reasonWord(kind))
	}
	return list
}

func reasonWord(kind ViolationKind) string {
	switch kind {
	case OfResource:
		return "resource"
	case OfApplications:
		return "applications"
	case OfBorrowing:
		return "borrowing"
	case OfItems:
		return "items"
	case OfQueue:
		return "queue"
	case OfHold:
		return "hold"
	}
	return ReasonOther
}
