package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/activity"
	"github.com/quorate/quorate/internal/webhook"
	"github.com/quorate/quorate/rpc"
)

// Settings are all settings of a server, and their single source: flags, environment variables, keys of the
// configuration file, defaults, help and docs/server.md are made from this struct. A key has the same name everywhere:
// `data-dir` in the file, QUORATE_SERVER_DATA_DIR in the environment, --data-dir on the command line.
//
// The tags: koanf and yaml are the key, twice because two libraries read it; default is the value if none is given;
// help is one line, for flags and for the page; reload:"yes" marks what SIGHUP changes while the server runs; group
// begins a section of the page.
type Settings struct {
	ID              string        `koanf:"id" yaml:"id" group:"The node" help:"name of this node, which must not change while its data folder exists (required)"`
	ClusterName     string        `koanf:"cluster-name" yaml:"cluster-name" default:"quorate" help:"name that all nodes of one cluster share"`
	DataDir         string        `koanf:"data-dir" yaml:"data-dir" help:"folder for this node's log, snapshots and identity (required)"`
	LogStore        string        `koanf:"log-store" yaml:"log-store" help:"how the node stores its log: wal (segment files) or bolt (a bbolt file); empty keeps what the data folder has, and means wal for a new one"`
	HTTPAddr        string        `koanf:"http-addr" yaml:"http-addr" default:"127.0.0.1:7101" group:"Addresses" help:"address of the API"`
	FrontEnds       []string      `koanf:"front-ends" yaml:"front-ends" help:"protocols of other systems to serve: boskos=HOST:PORT, an address of its own for clients of Boskos; keystone, unified limits below /keystone/v3 on the address of the API for OpenStack services with oslo.limit; yunikorn, usage and queues below /ws/v1; all nodes with the same ones; none if empty"`
	BoskosOpen      bool          `koanf:"boskos-open" yaml:"boskos-open" help:"in a guarded cluster, let Boskos clients without a token do what bindings give the user frontend/boskos; the same on all nodes"`
	RaftAddr        string        `koanf:"raft-addr" yaml:"raft-addr" default:"127.0.0.1:7201" help:"address for the replication between nodes"`
	GossipAddr      string        `koanf:"gossip-addr" yaml:"gossip-addr" default:"127.0.0.1:7301" help:"address for the gossip between nodes, TCP and UDP"`
	AdvertiseHTTP   string        `koanf:"advertise-http-addr" yaml:"advertise-http-addr" help:"address at which clients and other nodes reach the API, if different from http-addr"`
	AdvertiseRaft   string        `koanf:"advertise-raft-addr" yaml:"advertise-raft-addr" help:"address at which other nodes reach the replication, if different from raft-addr"`
	AdvertiseGossip string        `koanf:"advertise-gossip-addr" yaml:"advertise-gossip-addr" help:"address at which other nodes reach the gossip, if different from gossip-addr"`
	BootstrapExpect int           `koanf:"bootstrap-expect" yaml:"bootstrap-expect" default:"1" group:"The cluster" help:"how many nodes form the new cluster together: 1, 3, 5 or 7; 0 waits to be added to one"`
	Join            []string      `koanf:"join" yaml:"join" help:"gossip addresses of nodes of the cluster; this node's own may be among them"`
	AutoJoin        bool          `koanf:"auto-join" yaml:"auto-join" default:"true" help:"add new nodes and promote them automatically; the leader's setting counts"`
	Stabilization   time.Duration `koanf:"stabilization-time" yaml:"stabilization-time" default:"10s" help:"how long a new member must be healthy before it is promoted to voter automatically"`
	RemoveDeadAfter time.Duration `koanf:"remove-dead-after" yaml:"remove-dead-after" help:"how long a member must be silent before it is removed automatically, at least 1m; 0 never removes"`
	MinQuorum       int           `koanf:"min-quorum" yaml:"min-quorum" default:"3" help:"how many voters must remain when one is removed or demoted, unless the command is forced"`
	TimeZones       string        `koanf:"time-zones" yaml:"time-zones" help:"folder with another table of time zones than that of the program, such as /usr/share/zoneinfo; it needs the file tzdata.zi; the same version on all nodes"`
	TLSCA           string        `koanf:"tls-ca" yaml:"tls-ca" group:"Encryption" help:"file with the certificates of the cluster's authority; with tls-cert and tls-key it encrypts everything except gossip"`
	TLSCert         string        `koanf:"tls-cert" yaml:"tls-cert" help:"file with this node's certificate; a renewed one is used at once, without SIGHUP"`
	TLSKey          string        `koanf:"tls-key" yaml:"tls-key" help:"file with the key of this node's certificate; it must not be readable by all users"`
	TLSClientCA     string        `koanf:"tls-client-ca" yaml:"tls-client-ca" help:"file with the certificates of the authority of clients of the API; that of tls-ca if empty. Nodes are never verified with it"`
	TLSClientAuth   string        `koanf:"tls-client-auth" yaml:"tls-client-auth" default:"none" help:"what callers of the API must present: none (certificates are ignored), request (a certificate of the authority identifies the caller, if there is one) or require"`
	BootstrapSecret string        `koanf:"bootstrap-secret-file" yaml:"bootstrap-secret-file" help:"file with the secret that makes the first administrator (quorate token create), the same on all nodes; only its owner may read it, or the group too if another user owns it"`
	GossipKeysFile  string        `koanf:"gossip-keys-file" yaml:"gossip-keys-file" help:"file with the gossip keys, one per line, the first of which encrypts; SIGHUP reads it again"`
	GossipHear      bool          `koanf:"gossip-verify-incoming" yaml:"gossip-verify-incoming" default:"true" help:"accept only gossip that is encrypted with one of the keys; false while the nodes of a cluster get their first key one after the other"`
	GossipSend      bool          `koanf:"gossip-verify-outgoing" yaml:"gossip-verify-outgoing" default:"true" help:"encrypt the gossip that this node sends; false until all nodes have a key"`
	Insecure        bool          `koanf:"insecure" yaml:"insecure" help:"serve other machines in plain text (gossip excepted), where the network keeps strangers out"`
	InsecureOpen    bool          `koanf:"insecure-open" yaml:"insecure-open" help:"serve other machines while the cluster is open, so that everyone who reaches this node may do everything; insecure includes it, and a guarded cluster needs neither"`
	CORSOrigin      []string      `koanf:"cors-origin" yaml:"cors-origin" help:"origins of web pages of other sites that may call the API, such as https://quotas.example.org; none if empty"`
	UI              string        `koanf:"ui" yaml:"ui" default:"read" help:"the dashboard on the address of the API: off, read (it only shows) or write (it also offers changes, which callers need the rights for)"`
	CommitNotice    time.Duration `koanf:"commit-notice" yaml:"commit-notice" default:"10ms" help:"how soon followers learn what is committed when nothing more is written: shorter makes reads on followers faster and idle servers busier"`
	SnapshotEvery   uint64        `koanf:"snapshot-every" yaml:"snapshot-every" default:"16384" group:"Snapshots" help:"take a snapshot after this many new log entries"`
	SnapshotMiB     int           `koanf:"snapshot-mib" yaml:"snapshot-mib" default:"64" help:"take a snapshot also after this many MiB of new log entries, or four times the size of the newest snapshot if that is more; twice as much stays in the log; 0 counts entries only"`
	SnapshotCheck   time.Duration `koanf:"snapshot-check" yaml:"snapshot-check" default:"1m" help:"how often to check whether a snapshot is due"`
	SnapshotTrail   uint64        `koanf:"snapshot-trail" yaml:"snapshot-trail" default:"16384" help:"how many log entries to keep after a snapshot, for nodes that are a little behind"`
	RaiseLevelAfter time.Duration `koanf:"raise-level-after" yaml:"raise-level-after" default:"10m" group:"Upgrades and comparisons" help:"how long all members must have supported a newer feature level before the leader raises the cluster to it; 0 leaves it to quorate level raise"`
	CheckpointEvery time.Duration `koanf:"checkpoint-every" yaml:"checkpoint-every" default:"10m" help:"how often the leader makes the members compare their states, at least 1s; 0 leaves it to quorate digest list --now"`
	BackupDir       string        `koanf:"backup-dir" yaml:"backup-dir" group:"Backups" help:"folder into which this node saves periodic backups of the whole state; none if empty"`
	BackupEvery     time.Duration `koanf:"backup-every" yaml:"backup-every" default:"1h" help:"time between two backups, at least 1s"`
	BackupKeep      int           `koanf:"backup-keep" yaml:"backup-keep" default:"24" help:"how many of its backups to keep, at least 1; older ones are removed"`
	AuditFile       string        `koanf:"audit-file" yaml:"audit-file" group:"Audit" help:"file for the audit records of this node, which only its owner may read; - writes them to standard output; none are written if empty"`
	AuditSize       int           `koanf:"audit-size" yaml:"audit-size" default:"100" help:"size in MiB, 1 to 1048576, at which the audit file is renamed and a new one begun"`
	AuditKeep       int           `koanf:"audit-keep" yaml:"audit-keep" default:"10" help:"how many renamed audit files to keep, 1 to 1000; older ones are removed"`
	AuditClasses    []string      `koanf:"audit-classes" yaml:"audit-classes" help:"what the audit file has beside changes and refused calls: holds (what happens to allocations: grants, releases and other ends) and reads (calls that only read); nothing more if empty"`
	AuditRequired   string        `koanf:"audit-required" yaml:"audit-required" default:"none" help:"what the leader refuses while it cannot write to its audit file that it is asked for: none, changes (of the configuration and of access, and restores), or all (grants too)"`
	WebhookHosts    []string      `koanf:"webhook-hosts" yaml:"webhook-hosts" group:"Webhooks" help:"hosts to which events may be delivered, as HOST[:PORT] for https or http://HOST[:PORT]; *.example.org stands for all names below, the port * for all; the same on all nodes; none if empty"`
	WebhookSecrets  string        `koanf:"webhook-secrets-dir" yaml:"webhook-secrets-dir" help:"folder with the secrets that sign deliveries, a file for each name, the same on all nodes; only their owner may read them"`
	MaxCalls        int           `koanf:"max-calls" yaml:"max-calls" default:"8192" group:"Limits" help:"how many calls may run at once; callers from one address together may use three times what is free, one user of a cluster that is not open a quarter at most; further calls are answered with unavailable and a time to retry"`
	MaxStreams      int           `koanf:"max-streams" yaml:"max-streams" default:"8192" help:"how many watches and waiting requests may be open at once, shared in the same way; one user has an eighth at most, and a tenth for waiting requests"`
	MaxConnections  int           `koanf:"max-connections" yaml:"max-connections" default:"16384" help:"how many client connections may be open at once, including idle ones, shared in the same way"`
	CallRate        int           `koanf:"calls-per-second-per-user" yaml:"calls-per-second-per-user" help:"how many calls one user may begin in a second on this node, 1 to 1000000, unless the cluster is open; 0 for any number"`
	DiskSlow        time.Duration `koanf:"disk-slow" yaml:"disk-slow" default:"500ms" help:"how long a write to the log may take on average before the node warns about its disk; a leader hands over once to a member with a clearly faster disk from a quarter of that; 0 does neither"`
	DiskStall       time.Duration `koanf:"disk-stall" yaml:"disk-stall" default:"5s" help:"how long one write to the log may take before the node stops to act as leader, so that another one is elected; 0 waits without end"`
	DiskReserve     int           `koanf:"disk-reserve" yaml:"disk-reserve" default:"256" help:"how many MiB must be free for the data folder; with less, the leader refuses requests that make the ledger grow; 0 for none"`
	MemoryLimit     int           `koanf:"memory-limit" yaml:"memory-limit" help:"how many MiB the process takes before garbage collection takes precedence over calls; 0 is three quarters of the memory of the control group or machine; GOMEMLIMIT overrides it"`
	GCPercent       int           `koanf:"gc-percent" yaml:"gc-percent" default:"300" help:"garbage is collected when the heap has grown by this percentage: more takes memory, less takes processor time; GOGC overrides it"`
	LogLevel        string        `koanf:"log-level" yaml:"log-level" default:"info" reload:"yes" group:"Logs, profiles and traces" help:"minimum level to log: trace, debug, info, warn, error or off"`
	LogJSON         bool          `koanf:"log-json" yaml:"log-json" help:"log as JSON"`
	MetricsNodes    []string      `koanf:"metrics-nodes" yaml:"metrics-nodes" help:"nodes whose usage /metrics shows by themselves, as TREE for a root or TREE:node/path, where * stands for any characters of one name: tenants:* is all children of the root; none if empty"`
	MetricsAddr     string        `koanf:"metrics-addr" yaml:"metrics-addr" help:"address that serves /metrics, /livez and /readyz in plain text and to everyone who reaches it, beside the address of the API, so that monitoring needs no certificate and no token; not served if empty"`
	PprofAddr       string        `koanf:"pprof-addr" yaml:"pprof-addr" help:"address for profiles of this process; not served if empty"`
	OTLPEndpoint    string        `koanf:"otlp-endpoint" yaml:"otlp-endpoint" help:"URL of an OpenTelemetry collector that accepts traces over HTTP; no traces are sent if empty"`
	TraceSample     float64       `koanf:"trace-sample" yaml:"trace-sample" default:"0.1" help:"share of calls to trace, 0 to 1, among those whose caller did not decide it"`
}

type setting struct {
	key, byDefault, help, group string
	reloads                     bool
	field                       reflect.StructField
}

func settingFields() []setting {
	var list []setting
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Settings]()) {
		list = append(list, setting{
			f.Tag.Get("koanf"), f.Tag.Get("default"), f.Tag.Get("help"), f.Tag.Get("group"),
			f.Tag.Get("reload") == "yes", f,
		})
	}
	return list
}

// Validate reports every setting that no node could work with. It does not read the files that settings name; see
// [Settings.Preflight].
func (s Settings) Validate() error {
	var faults []error
	for _, must := range []struct{ key, value string }{{"id", s.ID}, {"data-dir", s.DataDir}} {
		if must.value == "" {
			faults = append(faults, fmt.Errorf("%s is missing: set --%s, %s, or %s in the configuration file",
				must.key, must.key, EnvironmentVariable(must.key), must.key))
		}
	}
	if s.LogStore != "" && s.LogStore != cluster.LogStoreWAL && s.LogStore != cluster.LogStoreBolt {
		faults = append(faults, fmt.Errorf("log-store is %q: allowed are %q, %q and empty for that of the data folder",
			s.LogStore, cluster.LogStoreWAL, cluster.LogStoreBolt))
	}
	if hclog.LevelFromString(s.LogLevel) == hclog.NoLevel {
		faults = append(faults, fmt.Errorf(
			"log-level is %q: allowed are trace, debug, info, warn, error and off", s.LogLevel))
	}
	if !slices.Contains(uiModes, s.UI) {
		faults = append(faults, fmt.Errorf("ui is %q: allowed are off, read and write", s.UI))
	}
	faults = append(faults, s.checkTracing())
	faults = append(faults, s.checkBackups()...)
	faults = append(faults, s.checkAudit()...)
	if _, err := ParseFrontEnds(s.FrontEnds); err != nil {
		faults = append(faults, err)
	}
	if _, err := s.shownNodes(); err != nil {
		faults = append(faults, err)
	}
	if _, err := webhook.ParseHosts(s.WebhookHosts); err != nil {
		faults = append(faults, fmt.Errorf("webhook-hosts: %w", err))
	}
	faults = append(faults, s.checkLimits()...)
	faults = append(faults, s.checkMemory()...)
	faults = append(faults, s.checkAddresses()...)
	return errors.Join(append(faults, s.checkSecurity()...)...)
}

// uiOff is the setting of ui that serves no dashboard.
const uiOff = "off"

// uiModes are the settings of ui.
var uiModes = []string{uiOff, "read", "write"}

// minDiskStall keeps ordinary pauses of a disk from ending leaderships.
const minDiskStall = time.Second

// maxCallRate bounds calls-per-second-per-user; a server serves fewer.
const maxCallRate = 1_000_000

func (s Settings) checkLimits() (faults []error) {
	for _, limit := range []struct {
		key         string
		value, most int
	}{
		{"max-calls", s.MaxCalls, 1 << 20},
		{"max-streams", s.MaxStreams, 1 << 20},
		{"max-connections", s.MaxConnections, 1 << 20},
	} {
		if limit.value < 1 || limit.value > limit.most {
			faults = append(faults, fmt.Errorf("%s is %d: allowed are 1 to %d", limit.key, limit.value, limit.most))
		}
	}
	if s.CallRate < 0 || s.CallRate > maxCallRate {
		faults = append(faults, fmt.Errorf(
			"calls-per-second-per-user is %d: allowed are 1 to %d, and 0 for any number", s.CallRate, maxCallRate))
	}
	if s.DiskSlow < 0 {
		faults = append(faults, fmt.Errorf("disk-slow is %v: allowed are 0 (never warn) and more", s.DiskSlow))
	}
	if s.DiskStall < 0 || s.DiskStall > 0 && s.DiskStall < minDiskStall {
		faults = append(faults, fmt.Errorf("disk-stall is %v: allowed are 0 (never) and %v or more", s.DiskStall,
			minDiskStall))
	}
	if s.SnapshotMiB < 0 || s.SnapshotMiB > 1<<30 {
		faults = append(faults, fmt.Errorf("snapshot-mib is %d: allowed are 0 (count entries only) to %d MiB", s.SnapshotMiB,
			1<<30))
	}
	if s.DiskReserve < 0 || s.DiskReserve > 1<<30 {
		faults = append(faults, fmt.Errorf("disk-reserve is %d: allowed are 0 (no reserve) to %d MiB",
			s.DiskReserve, 1<<30))
	}
	return faults
}

func (s Settings) checkBackups() (faults []error) {
	if s.BackupEvery < time.Second {
		faults = append(faults, fmt.Errorf("backup-every is %v: allowed is 1s or more", s.BackupEvery))
	}
	if s.BackupKeep < 1 {
		faults = append(faults, fmt.Errorf("backup-keep is %d: allowed is 1 or more", s.BackupKeep))
	}
	return faults
}

func (s Settings) shownNodes() ([]activity.NodePattern, error) {
	if n := len(s.MetricsNodes); n > activity.MostPatterns {
		return nil, fmt.Errorf("metrics-nodes has %d entries: allowed are up to %d; use * in a name to choose several nodes",
			n, activity.MostPatterns)
	}
	var list []activity.NodePattern
	for _, text := range s.MetricsNodes {
		pattern, err := activity.ParseNodePattern(text)
		if err != nil {
			return nil, fmt.Errorf("metrics-nodes: %w", err)
		}
		list = append(list, pattern)
	}
	return list, nil
}

// Values of audit-required.
const auditNone, auditChanges, auditAll = "none", "changes", "all"

// Values of audit-classes.
const auditHolds, auditReads = "holds", "reads"

func (s Settings) checkAudit() (faults []error) {
	if s.AuditSize < 1 || s.AuditSize > 1<<20 {
		faults = append(faults, fmt.Errorf("audit-size is %d: allowed are 1 to %d MiB", s.AuditSize, 1<<20))
	}
	if s.AuditKeep < 1 || s.AuditKeep > 1000 {
		faults = append(faults, fmt.Errorf("audit-keep is %d: allowed are 1 to 1000", s.AuditKeep))
	}
	for _, class := range s.AuditClasses {
		if class != auditHolds && class != auditReads {
			faults = append(faults, fmt.Errorf("audit-classes has %q: allowed are holds and reads", class))
		}
	}
	if len(s.AuditClasses) > 0 && s.AuditFile == "" {
		faults = append(faults, errors.New("audit-classes is set, but audit-file is empty: name a file"))
	}
	switch s.AuditRequired {
	case auditNone:
	case auditChanges, auditAll:
		if s.AuditFile == "" {
			faults = append(faults, fmt.Errorf("audit-required is %s, but audit-file is empty: name a file", s.AuditRequired))
		}
	default:
		faults = append(faults, fmt.Errorf("audit-required is %q: allowed are none, changes and all", s.AuditRequired))
	}
	return faults
}

func (s Settings) checkAddresses() (faults []error) {
	for _, address := range []struct {
		key, value string
		optional   bool
	}{
		{"http-addr", s.HTTPAddr, false},
		{"raft-addr", s.RaftAddr, false},
		{"gossip-addr", s.GossipAddr, false},
		{"metrics-addr", s.MetricsAddr, true},
		{"pprof-addr", s.PprofAddr, true},
	} {
		if _, _, err := net.SplitHostPort(address.value); err != nil && (address.value != "" || !address.optional) {
			faults = append(faults, fmt.Errorf("%s is %q: allowed is host:port", address.key, address.value))
		}
	}
	return faults
}

// Preflight reports why a node would not start with the settings, as far as that shows without starting it. It reads
// the files that they name.
func (s Settings) Preflight() error {
	if err := s.nodeConfig("", nil).WithDefaults().Validate(); err != nil {
		return err
	}
	_, err := openSecurity(s, hclog.NewNullLogger())
	return err
}

// NewLogger makes a logger with the name of the node and the level and format of the settings.
func (s Settings) NewLogger(to io.Writer) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{
		Name: s.ID, Level: hclog.LevelFromString(s.LogLevel), Output: to, JSONFormat: s.LogJSON,
	})
}

func (s Settings) apiLimits() rpc.Limits {
	return rpc.Limits{
		Calls: s.MaxCalls, Streams: s.MaxStreams, Connections: s.MaxConnections, CallsPerSecondPerUser: s.CallRate,
	}
}

func (s Settings) nodeConfig(version string, logger hclog.Logger) cluster.Config {
	advertised := s.AdvertiseHTTP
	if advertised == "" {
		advertised = s.HTTPAddr
	}
	return cluster.Config{
		ID: s.ID, ClusterName: s.ClusterName, DataDir: s.DataDir, LogStore: s.LogStore, Version: version, Logger: logger,
		RaftAddr: s.RaftAddr, RaftAdvertise: s.AdvertiseRaft, GossipAddr: s.GossipAddr,
		GossipAdvertise: s.AdvertiseGossip,
		HTTPAdvertise:   advertised, BootstrapExpect: s.BootstrapExpect, Join: s.Join,
		SnapshotThreshold: s.SnapshotEvery, SnapshotInterval: s.SnapshotCheck, TrailingLogs: s.SnapshotTrail,
		SnapshotBytes:   int64(s.SnapshotMiB) << 20,
		RaiseLevelAfter: s.RaiseLevelAfter, CheckpointEvery: s.CheckpointEvery,
		CommitNotice: s.CommitNotice, DiskSlow: s.DiskSlow, DiskStall: s.DiskStall,
		DiskReserve: int64(s.DiskReserve) << 20, TimeZones: s.TimeZones,
		ManualJoin: !s.AutoJoin, StabilizationTime: s.Stabilization,
		RemoveDeadAfter: s.RemoveDeadAfter, MinQuorum: s.MinQuorum,
	}
}
