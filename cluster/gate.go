package cluster

import (
	"fmt"
	"strings"
)

// admits is nil if entries of a format may be written: if every member of raft's configuration said, when it was last
// heard, that it understands them (docs/adr/0009). A member that was never heard since this node started counts as one
// that does not, because nothing else is safe. Once an entry of the format is in the log the question is settled: who
// does not understand it has stopped.
func (n *Node) admits(format uint32) *Error {
	if format <= 1 || n.ledger.Format() >= format {
		return nil
	}
	var behind []string
	for _, s := range n.servers() {
		switch p, heard := n.directory.find(string(s.ID)); {
		case !heard:
			behind = append(behind, fmt.Sprintf("%s (not heard of yet)", s.ID))
		case p.FeatureLevel < format:
			behind = append(behind, fmt.Sprintf("%s (version %s, feature level %d)", s.ID, p.Version, p.FeatureLevel))
		}
	}
	if len(behind) == 0 {
		return nil
	}
	return failure(NotUpgraded, true, nil, "this needs feature level %d on all members, and these are not known to have it: %s; "+
		"upgrade or start them, or remove them from the cluster", format, strings.Join(behind, ", "))
}
