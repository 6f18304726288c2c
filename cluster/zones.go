package cluster

import (
	"fmt"

	"github.com/quorate/quorate/cluster/recurrence"
)

// openZones opens the table of time zones that the configuration names.
func (c Config) openZones() (*recurrence.Zones, error) {
	if c.TimeZones == "" {
		return recurrence.CompiledZones(), nil
	}
	return recurrence.OpenZones(c.TimeZones)
}

// Zones is the table of time zones of this node. Windows of recurring limits follow that of the leader.
func (n *Node) Zones() *recurrence.Zones { return n.zones }

// DescribeZones says that a member has another table of time zones than the leader; empty if it has the same, or if
// either has not reported one. Such a member would compute other windows of recurring limits as
// soon as it leads.
func DescribeZones(member, version, leader, leaderVersion string) string {
	if version == leaderVersion || version == "" || leaderVersion == "" {
		return ""
	}
	return fmt.Sprintf("%s has version %s of the time zones, and the leader %s version %s: recurring limits follow the "+
		"leader's (docs/configuration.md)", member, version, leader, leaderVersion)
}
