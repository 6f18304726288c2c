package cluster

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/quota"
)

// Config is the configuration of one node. Fill it in, then call WithDefaults and Validate; Open calls both.
type Config struct {
	// ID identifies the node for as long as its data folder exists: 1 to 64 letters, digits, '.', '_' or '-'.
	ID string
	// ClusterName separates clusters that can reach each other; same format as ID. Default "quorate".
	ClusterName string
	// DataDir is the folder for the log, the snapshots and the identity of a node on a machine.
	DataDir string
	// LogStore is the kind of the log store: LogStoreWAL, LogStoreBolt, or empty for that of the data folder, and for the
	// default in a new folder.
	LogStore string
	// RaftAddr is the host:port that raft listens on. RaftAdvertise is the address that peers dial; default RaftAddr.
	RaftAddr, RaftAdvertise string
	// GossipAddr is the host:port, TCP and UDP, that gossip listens on. GossipAdvertise is the address that peers dial;
	// default GossipAddr.
	GossipAddr, GossipAdvertise string
	// HTTPAdvertise is the host:port at which peers and clients reach the API of this node.
	HTTPAdvertise string
	// BootstrapExpect is the number of nodes that form a new cluster together: 1, 3, 5 or 7, the same on all of them. With
	// 0 the node never forms a cluster and waits to be added.
	BootstrapExpect int
	// ManualJoin leaves adding and promoting nodes to operators. By default the leader does both.
	ManualJoin bool
	// StabilizationTime is how long a new member must be healthy before the leader promotes it to voter; default 10 s.
	StabilizationTime time.Duration
	// RemoveDeadAfter is how long a member must be silent before the leader removes it: at least one minute, or 0 for
	// never.
	RemoveDeadAfter time.Duration
	// MinQuorum is the number of voters that must remain when one is removed or demoted without force; default 3.
	MinQuorum int
	// Join lists gossip addresses of peers. It may contain this node's own address.
	Join []string
	// TimeoutScale multiplies raft's timeouts (1 s each: heartbeat, election, leader lease) and the timeouts derived from
	// them: 1 to 10, default 1.
	TimeoutScale int
	// CommitNotice is how long it takes, up to its double, until followers learn that an entry is committed if no other
	// entry follows: 1 ms to 1 s, default 10 ms. It delays reads on a follower that wait for a write just made, and it is
	// the interval of the messages that an idle leader sends to each follower (docs/adr/0045).
	CommitNotice time.Duration
	// SnapshotThreshold is the number of new log entries that triggers a snapshot; default 16384.
	SnapshotThreshold uint64
	// SnapshotBytes is the size of new log entries that triggers a snapshot as well, or four times that of the newest
	// snapshot if that is more. After a snapshot the log keeps at most twice as much. 0 for no bound.
	SnapshotBytes int64
	// SnapshotInterval is how often SnapshotThreshold is checked; default 60 s.
	SnapshotInterval time.Duration
	// TrailingLogs is the number of log entries kept after a snapshot, so that a slightly slow follower does not need the
	// snapshot; default 16384.
	TrailingLogs uint64
	// RaiseLevelAfter is how long all members must answer and understand a newer feature level before the leader raises
	// the cluster to it. Until then the older version can be started again. 0 leaves it to RaiseLevel.
	RaiseLevelAfter time.Duration
	// CheckpointEvery is how often the leader makes the members compare their states if entries were applied since; at
	// least one second. 0 leaves it to Checkpoint.
	CheckpointEvery time.Duration
	// DiskSlow is the mean duration of log writes above which the node warns about its disk; 0 for never.
	DiskSlow time.Duration
	// DiskStall is how long one write to the log may take before this node stops to act as leader (docs/adr/0118); 0 for
	// any time.
	DiskStall time.Duration
	// DiskReserve is the number of bytes that must be free for the data folder. Below it the node warns and, as leader,
	// refuses commands that make the ledger grow. 0 for no reserve.
	DiskReserve int64
	// TimeZones is the folder of the table of time zones by which recurring limits are computed while this node leads;
	// empty for that of the program (docs/adr/0131).
	TimeZones string
	// Bounds are the declared bounds of the ledger, the same on all nodes. Default quota.DefaultBounds.
	Bounds quota.Bounds
	// Formats are the formats that the node understands, and its feature level is the newest of them; nil for those of
	// this version. Others are for tests of upgrades.
	Formats *fsm.Formats
	// Version is the software version shown to peers and operators; at most 40 bytes. Default "dev".
	Version string
	// Logger receives the log. By default nothing is logged.
	Logger hclog.Logger
	// Observer receives events for metrics. Default: none.
	Observer Observer
}

// Kinds of log stores.
const (
	// LogStoreBolt keeps the log in a bbolt file.
	LogStoreBolt = "bolt"
	// LogStoreWAL keeps the log in segment files that are only appended to.
	LogStoreWAL = "wal"
)

const (
	// A follower suspects its leader after one to three heartbeat timeouts, because raft checks at random times. An
	// election waits for the slower one of two followers, because the other one refuses the pre-vote until it suspects the
	// leader too. This is nearly all of the failover time and must stay well below the time that callers wait for a leader
	// (5 s). A follower that is merely slow does no harm: the nodes that hear the leader refuse its pre-vote.
	heartbeatTimeout   = time.Second
	electionTimeout    = time.Second
	leaderLeaseTimeout = time.Second
	// stepTimeout bounds one raft operation that this node waits for, such as writing an entry. It is also how long a node
	// that has not heard from its leader counts as ready.
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

// WithDefaults returns the configuration with a value for every unset field that has a default.
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

// Validate returns all errors in a configuration with defaults. Each error names the field and the allowed values.
func (c Config) Validate() error {
	faults := []error{
		CheckName("ID", c.ID),
		CheckName("ClusterName", c.ClusterName),
		CheckAdvertisedAddr("RaftAdvertise", c.RaftAdvertise),
		CheckAdvertisedAddr("HTTPAdvertise", c.HTTPAdvertise),
		c.checkBootstrapExpect(),
		c.checkJoin(),
		c.checkMembership(),
		c.checkLogStore(),
	}
	if c.TimeoutScale < 1 || c.TimeoutScale > maxTimeoutScale {
		faults = append(faults, fmt.Errorf("TimeoutScale is %d: allowed are 1 to %d", c.TimeoutScale, maxTimeoutScale))
	}
	if len(c.Version) > maxVersionBytes {
		faults = append(faults, fmt.Errorf("the Version has %d bytes: allowed are at most %d", len(c.Version),
			maxVersionBytes))
	}
	if _, err := c.openZones(); err != nil {
		faults = append(faults, err)
	}
	if c.DiskSlow < 0 || c.DiskStall < 0 || c.DiskReserve < 0 {
		faults = append(faults, fmt.Errorf("DiskSlow is %v, DiskStall %v and DiskReserve %d: none of them may be "+
			"negative; 0 means none", c.DiskSlow, c.DiskStall, c.DiskReserve))
	}
	if c.SnapshotBytes < 0 {
		faults = append(faults, fmt.Errorf("SnapshotBytes is %d: allowed is a positive number, or 0 for no bound",
			c.SnapshotBytes))
	}
	if c.CommitNotice < time.Millisecond || c.CommitNotice > time.Second {
		faults = append(faults, fmt.Errorf("CommitNotice is %v: allowed are 1ms to 1s", c.CommitNotice))
	}
	if c.SnapshotInterval < time.Millisecond {
		faults = append(faults, fmt.Errorf("SnapshotInterval is %v: allowed is 1ms or more", c.SnapshotInterval))
	}
	if c.RaiseLevelAfter < 0 {
		faults = append(faults, fmt.Errorf("RaiseLevelAfter is %v: allowed is a positive duration, or 0 for never",
			c.RaiseLevelAfter))
	}
	if c.CheckpointEvery != 0 && c.CheckpointEvery < time.Second {
		faults = append(faults, fmt.Errorf("CheckpointEvery is %v: allowed is 1s or more, or 0 for never",
			c.CheckpointEvery))
	}
	return errors.Join(faults...)
}

func (c Config) checkLogStore() error {
	switch c.LogStore {
	case "", LogStoreWAL, LogStoreBolt:
		return nil
	}
	return fmt.Errorf("LogStore is %q: allowed are %q, %q and empty for that of the data folder", c.LogStore, LogStoreWAL,
		LogStoreBolt)
}

func (c Config) checkMembership() error {
	var faults []error
	if c.StabilizationTime < 0 {
		faults = append(faults, fmt.Errorf("StabilizationTime is %v: allowed are positive spans", c.StabilizationTime))
	}
	if c.RemoveDeadAfter != 0 && c.RemoveDeadAfter < minRemoveDead {
		faults = append(faults, fmt.Errorf("RemoveDeadAfter is %v: allowed are %v or more, or 0 for never",
			c.RemoveDeadAfter,
			minRemoveDead))
	}
	if c.MinQuorum < 1 || c.MinQuorum > maxMinQuorum {
		faults = append(faults, fmt.Errorf("MinQuorum is %d: allowed are 1 to %d", c.MinQuorum, maxMinQuorum))
	}
	return errors.Join(faults...)
}

var namePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`) })

// CheckName returns an error that names the field if value is not a valid node or cluster name.
func CheckName(field, value string) error {
	if namePattern().MatchString(value) {
		return nil
	}
	return fmt.Errorf("%s is %q: allowed are 1 to 64 letters, digits, '.', '_' or '-'", field, value)
}

// CheckAdvertisedAddr requires an address that another machine can dial: an explicit port and a specified host.
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
		return fmt.Errorf(
			"%s is %q: peers cannot dial that host; advertise the address that they reach this node at", field,
			value)
	}
	return nil
}

func (c Config) checkBootstrapExpect() error {
	if slices.Contains([]int{0, 1, 3, 5, 7}, c.BootstrapExpect) {
		return nil
	}
	return fmt.Errorf("BootstrapExpect is %d: allowed are 1, 3, 5 or 7 (an even number of nodes survives "+
		"no more losses "+
		"than one less), or 0 to wait to be added", c.BootstrapExpect)
}

// checkJoin refuses a node that would form a cluster alone although it was given peers. It most likely belongs to their
// cluster, and two clusters with one name would each grant the same quota.
func (c Config) checkJoin() error {
	for _, address := range c.Join {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return fmt.Errorf("the Join list has %q: allowed is host:port of a peer's gossip (%w)", address, err)
		}
		if c.BootstrapExpect == 1 && address != c.GossipAddr && address != c.GossipAdvertise {
			return fmt.Errorf(
				"the Join list names %s but BootstrapExpect is 1: a node that forms a cluster alone does not "+
					"join others; set BootstrapExpect to the number of nodes, or to 0 to be added to theirs", address)
		}
	}
	return nil
}

type timeoutScale time.Duration

func (s timeoutScale) scale(d time.Duration) time.Duration { return d * time.Duration(s) }

// leaderWait is how long an operation waits for a leader: by then an election has ended, or will not succeed.
func (s timeoutScale) leaderWait() time.Duration { return 3 * s.scale(stepTimeout) }

func (c Config) timeouts() timeoutScale { return timeoutScale(c.TimeoutScale) }

func (c Config) scaleTimeout(d time.Duration) time.Duration { return c.timeouts().scale(d) }
