package cluster

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/fsm"
)

// admits is nil if entries of a format may be written. Once one is in the log, or the level was raised to it, the question
// is settled: who does not understand it has stopped. The formats before fsm.RaisedFrom may come as soon as all members
// understand them (docs/adr/0009), the others only after the level was raised (docs/adr/0046).
func (n *Node) admits(format uint32) *Error {
	if format <= 1 || n.ledger.Format() >= format {
		return nil
	}
	if err := n.understood(format); err != nil {
		return err
	}
	if format < fsm.RaisedFrom {
		return nil
	}
	return failure(NotUpgraded, true, nil, "this needs feature level %d, and the cluster is at %d; all members have it, so the leader "+
		"raises the cluster to it after a while, or now with `quorate cluster level --raise`", format, n.ledger.Format())
}

// understood is nil if every member of raft's configuration said, when it last answered, that it understands a format. A
// member that has not answered since this node started counts as one that does not, because nothing else is safe.
func (n *Node) understood(format uint32) *Error {
	behind := n.behind(format)
	if len(behind) == 0 {
		return nil
	}
	return failure(NotUpgraded, true, nil, "this needs feature level %d on all members, and these are not known to have it: %s; "+
		"upgrade or start them, or remove them from the cluster", format, strings.Join(behind, ", "))
}

// behind names the members that are not known to understand a format.
func (n *Node) behind(format uint32) []string {
	var behind []string
	for _, s := range n.servers() {
		switch level, version, heard := n.understands(s); {
		case !heard:
			behind = append(behind, fmt.Sprintf("%s (has not answered yet)", s.ID))
		case level < format:
			behind = append(behind, fmt.Sprintf("%s (version %s, feature level %d)", s.ID, version, level))
		}
	}
	return behind
}
