package main

import (
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/rpc"
)

// settings are what a server can be told, and the only place that says so: flags, environment variables, keys of the
// file, their defaults, their help and docs/server.md are made from this struct. A key has the same name everywhere:
// `data-dir` in the file, QUORATE_DATA_DIR in the environment, --data-dir on the command line.
//
// The tags: koanf and yaml are the key, twice because two libraries read it; default is what counts if nobody says
// anything, by default nothing; help is one line, for flags and for the page; reload:"yes" marks what SIGHUP changes while
// the server runs; group begins a section of the page.
type settings struct {
	ID              string        `koanf:"id" yaml:"id" group:"The node" help:"name of this node, the same for as long as its data folder lives (required)"`
	ClusterName     string        `koanf:"cluster-name" yaml:"cluster-name" default:"quorate" help:"name that all nodes of one cluster share"`
	DataDir         string        `koanf:"data-dir" yaml:"data-dir" help:"folder for this node's log, snapshots and identity (required)"`
	HTTPAddr        string        `koanf:"http-addr" yaml:"http-addr" default:"127.0.0.1:7101" group:"Addresses" help:"address of the API"`
	BoskosAddr      string        `koanf:"boskos-addr" yaml:"boskos-addr" help:"address for clients of Boskos, which need one of their own; not served if empty"`
	RaftAddr        string        `koanf:"raft-addr" yaml:"raft-addr" default:"127.0.0.1:7201" help:"address for the replication between nodes"`
	GossipAddr      string        `koanf:"gossip-addr" yaml:"gossip-addr" default:"127.0.0.1:7301" help:"address for the gossip between nodes, TCP and UDP"`
	AdvertiseHTTP   string        `koanf:"advertise-http-addr" yaml:"advertise-http-addr" help:"address at which clients and other nodes reach the API, if another"`
	AdvertiseRaft   string        `koanf:"advertise-raft-addr" yaml:"advertise-raft-addr" help:"address at which other nodes reach the replication, if another"`
	AdvertiseGossip string        `koanf:"advertise-gossip-addr" yaml:"advertise-gossip-addr" help:"address at which other nodes reach the gossip, if another"`
	BootstrapExpect int           `koanf:"bootstrap-expect" yaml:"bootstrap-expect" default:"1" group:"The cluster" help:"how many nodes form the new cluster together: 1, 3, 5 or 7; 0 waits to be added to one"`
	Join            []string      `koanf:"join" yaml:"join" help:"gossip addresses of nodes of the cluster; this node's own may be among them"`
	AutoJoin        bool          `koanf:"auto-join" yaml:"auto-join" default:"true" help:"take in new nodes and promote them by itself; the leader's setting counts"`
	Stabilization   time.Duration `koanf:"stabilization-time" yaml:"stabilization-time" default:"10s" help:"for how long a new member must be healthy until it becomes a voter by itself"`
	RemoveDeadAfter time.Duration `koanf:"remove-dead-after" yaml:"remove-dead-after" help:"after how much silence a member is removed by itself, at least 1m; 0 is never"`
	MinQuorum       int           `koanf:"min-quorum" yaml:"min-quorum" default:"3" help:"how many voters must remain when one is removed or demoted, unless that is forced"`
	TLSCA           string        `koanf:"tls-ca" yaml:"tls-ca" group:"Encryption" help:"file with the certificates of the cluster's authority; it, tls-cert and tls-key encrypt everything but gossip"`
	TLSCert         string        `koanf:"tls-cert" yaml:"tls-cert" help:"file with this node's certificate; a renewed one is taken at once, also without SIGHUP"`
	TLSKey          string        `koanf:"tls-key" yaml:"tls-key" help:"file with the key of this node's certificate, which not everybody may read"`
	TLSClientAuth   string        `koanf:"tls-client-auth" yaml:"tls-client-auth" default:"none" help:"what callers of the API must show: none, request (a certificate of the authority, if any) or require"`
	GossipKeysFile  string        `koanf:"gossip-keys-file" yaml:"gossip-keys-file" help:"file with the keys of gossip, one a line, the first one encrypts; SIGHUP reads it again"`
	GossipHear      bool          `koanf:"gossip-verify-incoming" yaml:"gossip-verify-incoming" default:"true" help:"hear only gossip that is encrypted with one of the keys; false while the nodes of a cluster get their first key one after the other"`
	GossipSend      bool          `koanf:"gossip-verify-outgoing" yaml:"gossip-verify-outgoing" default:"true" help:"encrypt what this node gossips; false until all nodes have a key"`
	Insecure        bool          `koanf:"insecure" yaml:"insecure" help:"serve other machines in plain text, gossip excepted, where the network keeps strangers out"`
	CORSOrigin      []string      `koanf:"cors-origin" yaml:"cors-origin" help:"origins of web pages of other sites that may call and read, such as https://quotas.example.org; none if empty"`
	CommitNotice    time.Duration `koanf:"commit-notice" yaml:"commit-notice" default:"10ms" help:"how soon followers learn what is committed when nothing more is written: shorter makes reads on followers quicker and idle servers busier"`
	SnapshotEvery   uint64        `koanf:"snapshot-every" yaml:"snapshot-every" default:"16384" group:"Snapshots" help:"how many new log entries make a snapshot worth while"`
	SnapshotCheck   time.Duration `koanf:"snapshot-check" yaml:"snapshot-check" default:"1m" help:"how often to look whether a snapshot is worth while"`
	SnapshotTrail   uint64        `koanf:"snapshot-trail" yaml:"snapshot-trail" default:"16384" help:"how many log entries stay after a snapshot, for nodes that are a little behind"`
	RaiseLevelAfter time.Duration `koanf:"raise-level-after" yaml:"raise-level-after" default:"10m" group:"Upgrades and comparisons" help:"how long all members must have understood a newer feature level before the leader raises the cluster to it; 0 leaves it to quorate cluster level --raise"`
	CheckpointEvery time.Duration `koanf:"checkpoint-every" yaml:"checkpoint-every" default:"10m" help:"how often the leader has the members compare their states, at least 1s; 0 leaves it to quorate cluster digests --now"`
	BackupDir       string        `koanf:"backup-dir" yaml:"backup-dir" group:"Backups" help:"folder into which this node saves backups of the whole state by itself; none if empty"`
	BackupEvery     time.Duration `koanf:"backup-every" yaml:"backup-every" default:"1h" help:"how often it does that, at least 1s"`
	BackupKeep      int           `koanf:"backup-keep" yaml:"backup-keep" default:"24" help:"how many of its backups stay, at least 1; older ones are removed"`
	MaxCalls        int           `koanf:"max-calls" yaml:"max-calls" default:"8192" group:"Limits" help:"how many calls may be under way at once; callers from one address together may hold three times what is free; more are answered with unavailable and a time to come back"`
	MaxStreams      int           `koanf:"max-streams" yaml:"max-streams" default:"8192" help:"how many watches and waiting requests may be open at once, shared in the same way"`
	MaxConnections  int           `koanf:"max-connections" yaml:"max-connections" default:"16384" help:"how many connections of clients may be open at once, idle ones too, shared in the same way"`
	DiskSlow        time.Duration `koanf:"disk-slow" yaml:"disk-slow" default:"500ms" help:"how long writing to the log may take on average before the node warns of its disk; 0 never warns"`
	DiskReserve     int           `koanf:"disk-reserve" yaml:"disk-reserve" default:"256" help:"how many MiB must be free for the data folder; with less the leader refuses what makes the ledger grow; 0 for none"`
	LogLevel        string        `koanf:"log-level" yaml:"log-level" default:"info" reload:"yes" group:"What it tells" help:"what to log: trace, debug, info, warn, error or off"`
	LogJSON         bool          `koanf:"log-json" yaml:"log-json" help:"log as JSON"`
	PprofAddr       string        `koanf:"pprof-addr" yaml:"pprof-addr" help:"address for profiles of this process; not served if empty"`
	OTLPEndpoint    string        `koanf:"otlp-endpoint" yaml:"otlp-endpoint" help:"URL of an OpenTelemetry collector that takes traces over HTTP; none are made if empty"`
	TraceSample     float64       `koanf:"trace-sample" yaml:"trace-sample" default:"0.1" help:"share of the calls to trace, 0 to 1, of those whose caller has not decided it"`
}

const envPrefix = "QUORATE_"

// setting is one field of the settings.
type setting struct {
	key, byDefault, help, group string
	reloads                     bool
	field                       reflect.StructField
}

func (s setting) environment() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(s.key, "-", "_"))
}

// allSettings are the settings in the order of the struct.
func allSettings() []setting {
	var list []setting
	for _, f := range reflect.VisibleFields(reflect.TypeFor[settings]()) {
		list = append(list, setting{
			f.Tag.Get("koanf"), f.Tag.Get("default"), f.Tag.Get("help"), f.Tag.Get("group"), f.Tag.Get("reload") == "yes", f,
		})
	}
	return list
}

// check refuses what no node could work with. What only the node itself can judge, it judges when it is opened.
func (s settings) check() error {
	var faults []error
	for _, must := range []struct{ key, value string }{{"id", s.ID}, {"data-dir", s.DataDir}} {
		if must.value == "" {
			faults = append(faults, fmt.Errorf("%s is missing: set --%s, %s, or %s in the configuration file",
				must.key, must.key, setting{key: must.key}.environment(), must.key))
		}
	}
	if hclog.LevelFromString(s.LogLevel) == hclog.NoLevel {
		faults = append(faults, fmt.Errorf("log-level is %q: allowed are trace, debug, info, warn, error and off", s.LogLevel))
	}
	faults = append(faults, s.checkTracing())
	faults = append(faults, s.checkBackups()...)
	faults = append(faults, s.checkLimits()...)
	faults = append(faults, s.checkAddresses()...)
	return errors.Join(append(faults, s.checkSecurity()...)...)
}

func (s settings) checkLimits() (faults []error) {
	for _, limit := range []struct {
		key         string
		value, most int
	}{
		{"max-calls", s.MaxCalls, 1 << 20}, {"max-streams", s.MaxStreams, 1 << 20}, {"max-connections", s.MaxConnections, 1 << 20},
	} {
		if limit.value < 1 || limit.value > limit.most {
			faults = append(faults, fmt.Errorf("%s is %d: allowed are 1 to %d", limit.key, limit.value, limit.most))
		}
	}
	if s.DiskSlow < 0 {
		faults = append(faults, fmt.Errorf("disk-slow is %v: allowed are 0 (never warn) and more", s.DiskSlow))
	}
	if s.DiskReserve < 0 || s.DiskReserve > 1<<30 {
		faults = append(faults, fmt.Errorf("disk-reserve is %d: allowed are 0 (no reserve) to %d MiB", s.DiskReserve, 1<<30))
	}
	return faults
}

func (s settings) checkBackups() (faults []error) {
	if s.BackupEvery < time.Second {
		faults = append(faults, fmt.Errorf("backup-every is %v: allowed is 1s or more", s.BackupEvery))
	}
	if s.BackupKeep < 1 {
		faults = append(faults, fmt.Errorf("backup-keep is %d: allowed is 1 or more", s.BackupKeep))
	}
	return faults
}

func (s settings) checkAddresses() (faults []error) {
	for _, address := range []struct {
		key, value string
		optional   bool
	}{
		{"http-addr", s.HTTPAddr, false},
		{"raft-addr", s.RaftAddr, false},
		{"gossip-addr", s.GossipAddr, false},
		{"boskos-addr", s.BoskosAddr, true},
		{"pprof-addr", s.PprofAddr, true},
	} {
		if _, _, err := net.SplitHostPort(address.value); err != nil && (address.value != "" || !address.optional) {
			faults = append(faults, fmt.Errorf("%s is %q: allowed is host:port", address.key, address.value))
		}
	}
	return faults
}

// limits are what the API takes on at once.
func (s settings) limits() rpc.Limits {
	return rpc.Limits{Calls: s.MaxCalls, Streams: s.MaxStreams, Connections: s.MaxConnections}
}

// config is what the node below is told.
func (s settings) config(logger hclog.Logger) cluster.Config {
	advertised := s.AdvertiseHTTP
	if advertised == "" {
		advertised = s.HTTPAddr
	}
	return cluster.Config{
		ID: s.ID, ClusterName: s.ClusterName, DataDir: s.DataDir,
		RaftAddr: s.RaftAddr, RaftAdvertise: s.AdvertiseRaft, GossipAddr: s.GossipAddr, GossipAdvertise: s.AdvertiseGossip,
		HTTPAdvertise: advertised, BootstrapExpect: s.BootstrapExpect, Join: s.Join, Version: version, Logger: logger,
		SnapshotThreshold: s.SnapshotEvery, SnapshotInterval: s.SnapshotCheck, TrailingLogs: s.SnapshotTrail,
		RaiseLevelAfter: s.RaiseLevelAfter, CheckpointEvery: s.CheckpointEvery,
		CommitNotice: s.CommitNotice, DiskSlow: s.DiskSlow, DiskReserve: int64(s.DiskReserve) << 20,
		ManualJoin: !s.AutoJoin, StabilizationTime: s.Stabilization, RemoveDeadAfter: s.RemoveDeadAfter, MinQuorum: s.MinQuorum,
	}
}
