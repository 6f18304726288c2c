package cluster

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/quota"
)

// Config says what one node is and how it behaves. Fill it, then call WithDefaults and Validate; Open does both.
type Config struct {
	// ID names the node for as long as its data folder lives: 1 to 64 letters, digits, '.', '_' or '-'.
	ID string
	// ClusterName keeps clusters apart that can reach each other, same form as ID. Default "quorate".
	ClusterName string
	// DataDir is where a node on a machine keeps its log, its snapshots and its identity.
	DataDir string
	// RaftAddr is what raft listens on, as host:port; RaftAdvertise is what peers dial, by default the same.
	RaftAddr, RaftAdvertise string
	// GossipAddr is what gossip listens on, TCP and UDP; GossipAdvertise is what peers dial, by default the same.
	GossipAddr, GossipAdvertise string
	// HTTPAdvertise is where peers and clients reach this node's API, as host:port.
	HTTPAdvertise string
	// BootstrapExpect is how many nodes form a new cluster together: 1, 3, 5 or 7, the same on all of them. 0 never
	// forms one and waits to be added.
	BootstrapExpect int
	// ManualJoin leaves it to operators to take new nodes in and to promote them; by default the leader does both by itself.
	ManualJoin bool
	// StabilizationTime is for how long a new member must be healthy until it becomes a voter by itself; default 10 s.
	StabilizationTime time.Duration
	// RemoveDeadAfter is after how much silence the leader removes a member by itself: at least a minute; 0 is never.
	RemoveDeadAfter time.Duration
	// MinQuorum is how many voters there must be after one is removed or demoted, unless that is forced; default 3.
	MinQuorum int
	// Join lists gossip addresses of peers, this node's own may be among them.
	Join []string
	// TimeoutScale multiplies raft's timeouts (1 s each: heartbeat, election, leader lease) and what follows from them: 1 to 10, default 1.
	TimeoutScale int
	// CommitNotice is after what time, up to its double, followers learn that an entry is committed if no other follows it:
	// 1 ms to 1 s, default 10 ms. A read on a follower that wants what was just written waits so long, and an idle leader
	// sends each follower a message so often (docs/adr/0045).
	CommitNotice time.Duration
	// SnapshotThreshold is how many new entries make a snapshot worth while; default 16384.
	SnapshotThreshold uint64
	// SnapshotInterval is how often that is looked at; default 60 s.
	SnapshotInterval time.Duration
	// TrailingLogs is how many entries stay after a snapshot, so that a follower that is a little behind needs none;
	// default 16384.
	TrailingLogs uint64
	// RaiseLevelAfter is how long all members must be there and understand a newer feature level before the leader raises the
	// cluster to it; until then the older version can be started again. 0 leaves it to RaiseLevel.
	RaiseLevelAfter time.Duration
	// CheckpointEvery is how often the leader has the members compare their states, if anything was applied since; at least
	// a second. 0 leaves it to Checkpoint.
	CheckpointEvery time.Duration
	// DiskSlow is how long a write to the log may take on average before the node warns of its disk; 0 for never.
	DiskSlow time.Duration
	// DiskReserve is how many bytes must be left for the data folder. With less the node warns, and as leader refuses what
	// makes the ledger grow. 0 for no reserve.
	DiskReserve int64
	// Bounds are the declared bounds of the ledger, the same on all nodes. Default quota.DefaultBounds.
	Bounds quota.Bounds
	// Version is this software's version, as peers and operators see it; at most 40 bytes. Default "dev".
	Version string
	// Logger receives what happens. Default: nothing.
	Logger hclog.Logger
	// Observer is told what the node does, for metrics. Default: nobody.
	Observer Observer
}

const (
	// A follower takes its leader for lost after one to three times the heartbeat timeout: raft looks at random moments. An
	// election waits for the slower one of two followers, because the other refuses the pre-vote until then. That is nearly
	// all of a fail-over, and must stay well below what callers wait for a leader (5 s). A follower that is only slow
	// disturbs nobody: those who hear the leader refuse it the pre-vote.
	heartbeatTimeout   = time.Second
	electionTimeout    = time.Second
	leaderLeaseTimeout = time.Second
	// stepTimeout bounds one step of raft that this node waits for, such as an entry that is to be written, and how long a
	// node that has not heard from its leader counts as ready.
	stepTimeout = 2 * time.Second

	maxTimeoutScale  = 10
	maxAddressBytes  = 100
	maxVersionBytes  = 40
	defaultCluster   = "quorate"
	defaultVersion   = "dev"
	defaultNotice    = 10 * time.Millisecond
	defaultThreshold = 16384
	defaultTrailing  = 16384
	defaultInterval  = time.Minute

	defaultStabilization = 10 * time.Second
	defaultMinQuorum     = 3
	maxMinQuorum         = 100
	minRemoveDead        = time.Minute
)

// WithDefaults returns the configuration with every unset field that has a default filled in.
func (c Config) WithDefaults() Config {
	setDefault(&c.ClusterName, defaultCluster)
	setDefault(&c.RaftAdvertise, c.RaftAddr)
	setDefault(&c.GossipAdvertise, c.GossipAddr)
	setDefault(&c.TimeoutScale, 1)
	setDefault(&c.CommitNotice, defaultNotice)
	setDefault(&c.SnapshotThreshold, defaultThreshold)
	setDefault(&c.SnapshotInterval, defaultInterval)
	setDefault(&c.TrailingLogs, defaultTrailing)
	setDefault(&c.StabilizationTime, defaultStabilization)
	setDefault(&c.MinQuorum, defaultMinQuorum)
	setDefault(&c.Version, defaultVersion)
	setDefault(&c.Bounds, quota.DefaultBounds())
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	if c.Observer == nil {
		c.Observer = noopObserver{}
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var unset T
	if *field == unset {
		*field = value
	}
}

// Validate returns every fault of a configuration with its defaults, each naming the field and the allowed values.
func (c Config) Validate() error {
	faults := []error{
		CheckName("ID", c.ID),
		CheckName("ClusterName", c.ClusterName),
		CheckAdvertisedAddr("RaftAdvertise", c.RaftAdvertise),
		CheckAdvertisedAddr("HTTPAdvertise", c.HTTPAdvertise),
		c.checkBootstrapExpect(),
		c.checkJoin(),
		c.checkMembership(),
	}
	if c.TimeoutScale < 1 || c.TimeoutScale > maxTimeoutScale {
		faults = append(faults, fmt.Errorf("TimeoutScale is %d: allowed are 1 to %d", c.TimeoutScale, maxTimeoutScale))
	}
	if len(c.Version) > maxVersionBytes {
		faults = append(faults, fmt.Errorf("the Version has %d bytes: allowed are at most %d", len(c.Version), maxVersionBytes))
	}
	if c.DiskSlow < 0 || c.DiskReserve < 0 {
		faults = append(faults, fmt.Errorf("DiskSlow is %v and DiskReserve %d: neither may be negative; 0 is for none", c.DiskSlow, c.DiskReserve))
	}
	if c.CommitNotice < time.Millisecond || c.CommitNotice > time.Second {
		faults = append(faults, fmt.Errorf("CommitNotice is %v: allowed are 1ms to 1s", c.CommitNotice))
	}
	if c.SnapshotInterval < time.Millisecond {
		faults = append(faults, fmt.Errorf("SnapshotInterval is %v: allowed is 1ms or more", c.SnapshotInterval))
	}
	if c.RaiseLevelAfter < 0 {
		faults = append(faults, fmt.Errorf("RaiseLevelAfter is %v: allowed is a duration, or 0 for never by itself", c.RaiseLevelAfter))
	}
	if c.CheckpointEvery != 0 && c.CheckpointEvery < time.Second {
		faults = append(faults, fmt.Errorf("CheckpointEvery is %v: allowed is 1s or more, or 0 for never by itself", c.CheckpointEvery))
	}
	return errors.Join(faults...)
}

// checkMembership judges what the leader does with members.
func (c Config) checkMembership() error {
	var faults []error
	if c.StabilizationTime < 0 {
		faults = append(faults, fmt.Errorf("StabilizationTime is %v: allowed are positive spans", c.StabilizationTime))
	}
	if c.RemoveDeadAfter != 0 && c.RemoveDeadAfter < minRemoveDead {
		faults = append(faults, fmt.Errorf("RemoveDeadAfter is %v: allowed are %v or more, or 0 for never", c.RemoveDeadAfter, minRemoveDead))
	}
	if c.MinQuorum < 1 || c.MinQuorum > maxMinQuorum {
		faults = append(faults, fmt.Errorf("MinQuorum is %d: allowed are 1 to %d", c.MinQuorum, maxMinQuorum))
	}
	return errors.Join(faults...)
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// CheckName refuses what cannot be the name of a node or a cluster, naming the field.
func CheckName(field, value string) error {
	if namePattern.MatchString(value) {
		return nil
	}
	return fmt.Errorf("%s is %q: allowed are 1 to 64 letters, digits, '.', '_' or '-'", field, value)
}

// CheckAdvertisedAddr wants an address that another machine could dial: a port that is known and a host that is not "any".
func CheckAdvertisedAddr(field, value string) error {
	host, port, err := net.SplitHostPort(value)
	if err != nil {
		return fmt.Errorf("%s is %q: allowed is host:port that peers can dial (%w)", field, value, err)
	}
	if len(value) > maxAddressBytes {
		return fmt.Errorf("%s has %d bytes: allowed are at most %d", field, len(value), maxAddressBytes)
	}
	if number, err := strconv.Atoi(port); err != nil || number < 1 || number > 65535 {
		return fmt.Errorf("%s is %q: allowed are ports 1 to 65535", field, value)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return fmt.Errorf("%s is %q: peers cannot dial that host; advertise the address that they reach this node at", field, value)
	}
	return nil
}

func (c Config) checkBootstrapExpect() error {
	if slices.Contains([]int{0, 1, 3, 5, 7}, c.BootstrapExpect) {
		return nil
	}
	return fmt.Errorf("BootstrapExpect is %d: allowed are 1, 3, 5 or 7 (an even number of nodes survives no more losses "+
		"than one less), or 0 to wait to be added", c.BootstrapExpect)
}

// checkJoin refuses a node that would form a cluster alone although it was told of others: most likely it belongs to
// theirs, and two clusters with one name would each grant the same quota.
func (c Config) checkJoin() error {
	for _, address := range c.Join {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return fmt.Errorf("the Join list has %q: allowed is host:port of a peer's gossip (%w)", address, err)
		}
		if c.BootstrapExpect == 1 && address != c.GossipAddr && address != c.GossipAdvertise {
			return fmt.Errorf("the Join list names %s but BootstrapExpect is 1: a node that forms a cluster alone joins nobody; "+
				"set BootstrapExpect to the number of nodes, or to 0 to be added to theirs", address)
		}
	}
	return nil
}

func (c Config) scaleTimeout(d time.Duration) time.Duration { return d * time.Duration(c.TimeoutScale) }

// leaderWait is how long an operation of this node waits for a leader to appear: elections are over by then, or will not
// succeed.
func (c Config) leaderWait() time.Duration { return 3 * c.scaleTimeout(stepTimeout) }
