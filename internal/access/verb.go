package access

import (
	"iter"
	"math/bits"
	"strings"
)

// Verb is one thing that a caller may do, as one bit. The list is closed. The order of the bits never changes: replicas
// store sets of verbs as numbers.
type Verb uint64

// Verbs that are asked at a node.
const (
	// UsageRead allows reading usage, limits and items.
	UsageRead Verb = 1 << iota
	// ConfigRead allows reading the configuration.
	ConfigRead
	// HoldersRead allows reading who holds what.
	HoldersRead
	// DataRead allows reading user data of leases and items.
	DataRead
	// Hold allows holding allocations, and changing one's own.
	Hold
	// HoldAs allows holding for other users, as far as the binding says.
	HoldAs
	// HoldForce allows holding beyond limits.
	HoldForce
	// HoldOperate allows renewing, releasing and confirming allocations of others.
	HoldOperate
	// ItemsClean allows changing states and data of items.
	ItemsClean
	// ItemsReset allows resetting items of holders that no longer answer.
	ItemsReset
	// LimitsRequest allows requesting limits that others approve.
	LimitsRequest
	// LimitsSet allows setting limits.
	LimitsSet
	// NodesManage allows adding, removing, moving and describing nodes.
	NodesManage
	// PolicySet allows setting policies, defaults, principal limits and queueing.
	PolicySet
	// NodesCordon allows holding and resuming nodes.
	NodesCordon
	// BindingsGrant allows adding and removing bindings.
	BindingsGrant
)

// Verbs that are asked on the cluster.
const (
	// TreeCreate allows adding and removing trees.
	TreeCreate Verb = 1 << (iota + 16)
	// ClusterRead allows reading the state of members.
	ClusterRead
	// ClusterOperate allows changing the membership and the leader.
	ClusterOperate
	// ClusterDebug allows reading diagnostics.
	ClusterDebug
	// MetricsRead allows reading metrics.
	MetricsRead
	// HistoryRead allows reading all revisions of the configuration.
	HistoryRead
	// SnapshotSave allows making backups.
	SnapshotSave
	// SnapshotRestore allows replacing the state by a backup.
	SnapshotRestore
	// AccessRead allows reading accounts, tokens without secrets, refusals and the access section.
	AccessRead
	// AccessManage allows changing all of these.
	AccessManage
	// AuditRead allows reading the audit records.
	AuditRead
)

// verbNames has the name of each verb by the number of its bit.
var verbNames = [...]string{
	"usage.read", "config.read", "holders.read", "data.read", "hold", "hold.as", "hold.force", "hold.operate",
	"items.clean", "items.reset", "limits.request", "limits.set", "nodes.manage", "policy.set", "nodes.cordon",
	"bindings.grant", "tree.create", "cluster.read", "cluster.operate", "cluster.debug", "metrics.read",
	"history.read", "snapshot.save", "snapshot.restore", "access.read", "access.manage", "audit.read",
}

// String is the name of the verb, as it is written in roles.
func (v Verb) String() string {
	if i := bits.TrailingZeros64(uint64(v)); i < len(verbNames) && bits.OnesCount64(uint64(v)) == 1 {
		return verbNames[i]
	}
	return "unknown"
}

// ParseVerb reads the name of a verb.
func ParseVerb(name string) (Verb, *Error) {
	for i, known := range verbNames {
		if name == known {
			return 1 << i, nil
		}
	}
	return 0, invalid("", oneOf(verbNames[:]), "%q is not a verb", clip(name))
}

// Verbs is a set of verbs. The zero value is empty.
type Verbs uint64

// Sets of verbs.
const (
	// NodeVerbs are asked at a node, ClusterVerbs on the cluster. No verb is in both.
	NodeVerbs    Verbs = 1<<16 - 1
	ClusterVerbs Verbs = AllVerbs &^ NodeVerbs
	// AllVerbs is the whole closed list.
	AllVerbs Verbs = 1<<27 - 1
	// ConfiguringVerbs change the configuration of nodes.
	ConfiguringVerbs = Verbs(LimitsSet | NodesManage | PolicySet | NodesCordon | BindingsGrant)
)

// SetOf returns the set of the given verbs.
func SetOf(verbs ...Verb) Verbs {
	var set Verbs
	for _, v := range verbs {
		set |= Verbs(v)
	}
	return set
}

// Has reports whether v is in the set. The zero Verb is in no set.
func (s Verbs) Has(v Verb) bool { return s&Verbs(v) != 0 }

// Contains reports whether all verbs of other are in the set.
func (s Verbs) Contains(other Verbs) bool { return other&^s == 0 }

// Len is the number of verbs.
func (s Verbs) Len() int { return bits.OnesCount64(uint64(s)) }

// All yields the verbs in the order of the closed list.
func (s Verbs) All() iter.Seq[Verb] {
	return func(yield func(Verb) bool) {
		for ; s != 0; s &= s - 1 {
			if !yield(Verb(s & -s)) {
				return
			}
		}
	}
}

// Names are the names of the verbs in the order of the closed list.
func (s Verbs) Names() []string {
	names := make([]string, 0, s.Len())
	for v := range s.All() {
		names = append(names, v.String())
	}
	return names
}

// String joins the names with blanks.
func (s Verbs) String() string { return strings.Join(s.Names(), " ") }

// ParseVerbs reads names in any order. A name that is given twice is refused, because it is probably a mistake for
// another one.
func ParseVerbs(names []string) (Verbs, *Error) {
	var set Verbs
	for i, name := range names {
		v, err := ParseVerb(name)
		if err != nil {
			return 0, err.below(indexed("verbs", i))
		}
		if set.Has(v) {
			return 0, invalid(indexed("verbs", i), "name each verb once", "%s is given twice", v)
		}
		set |= Verbs(v)
	}
	return set, nil
}
