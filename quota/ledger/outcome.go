package ledger

import "github.com/quorate/quorate/quota"

// Outcome is what one command did. Refused is nil unless the command changed nothing for a reason other than a denial.
type Outcome struct {
	// Refused says why nothing was done.
	Refused *quota.Error
	// Decision is set for an Allocate that was decided (granted or denied).
	Decision *quota.Decision
	// Allocation is set for a granted Allocate and for a Release. A dry run grants nothing, so there it is nil unless the
	// allocation exists already.
	Allocation *Allocation
	// Configuration is set for a change of configuration.
	Configuration *quota.Configuration
	// Restored are the ids of the allocations that hold again after a Cancel; none, or all that had been preempted.
	Restored []string
	// Now is ledger time after the command.
	Now quota.Instant
	// Items are those of an UpdateItems, in its order, or those that a ResetItems took, by name, with whoever had them.
	Items []quota.ItemInfo
	// Expired counts what an Expire has ended or changed.
	Expired int
	// Repeated is true if the command had been carried out before and changed nothing now.
	Repeated bool
}
