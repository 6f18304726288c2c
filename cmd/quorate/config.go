package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/hashicorp/go-hclog"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/quorate/quorate/cluster"
)

// settings are what a server can be told. A key has the same name everywhere: `data-dir` in the file, QUORATE_DATA_DIR
// in the environment, --data-dir on the command line; each of them overrides the one before.
type settings struct {
	ID              string        `koanf:"id" yaml:"id"`
	ClusterName     string        `koanf:"cluster-name" yaml:"cluster-name"`
	DataDir         string        `koanf:"data-dir" yaml:"data-dir"`
	HTTPAddr        string        `koanf:"http-addr" yaml:"http-addr"`
	BoskosAddr      string        `koanf:"boskos-addr" yaml:"boskos-addr"`
	RaftAddr        string        `koanf:"raft-addr" yaml:"raft-addr"`
	GossipAddr      string        `koanf:"gossip-addr" yaml:"gossip-addr"`
	AdvertiseHTTP   string        `koanf:"advertise-http-addr" yaml:"advertise-http-addr"`
	AdvertiseRaft   string        `koanf:"advertise-raft-addr" yaml:"advertise-raft-addr"`
	AdvertiseGossip string        `koanf:"advertise-gossip-addr" yaml:"advertise-gossip-addr"`
	BootstrapExpect int           `koanf:"bootstrap-expect" yaml:"bootstrap-expect"`
	Join            []string      `koanf:"join" yaml:"join"`
	SnapshotEvery   uint64        `koanf:"snapshot-every" yaml:"snapshot-every"`
	SnapshotCheck   time.Duration `koanf:"snapshot-check" yaml:"snapshot-check"`
	SnapshotTrail   uint64        `koanf:"snapshot-trail" yaml:"snapshot-trail"`
	LogLevel        string        `koanf:"log-level" yaml:"log-level"`
	LogJSON         bool          `koanf:"log-json" yaml:"log-json"`
	PprofAddr       string        `koanf:"pprof-addr" yaml:"pprof-addr"`
}

const (
	configFlag = "config"
	envPrefix  = "QUORATE_"
)

func addServerFlags(f *pflag.FlagSet) {
	f.String(configFlag, "", "YAML file with the same settings; environment variables QUORATE_… and flags override it")
	f.String("id", "", "name of this node, the same for as long as its data folder lives (required)")
	f.String("cluster-name", "quorate", "name that all nodes of one cluster share")
	f.String("data-dir", "", "folder for this node's log, snapshots and identity (required)")
	f.String("http-addr", "127.0.0.1:7101", "address of the API")
	f.String("boskos-addr", "", "address for clients of Boskos, which need one of their own; not served if empty")
	f.String("raft-addr", "127.0.0.1:7201", "address for the replication between nodes")
	f.String("gossip-addr", "127.0.0.1:7301", "address for the gossip between nodes, TCP and UDP")
	f.String("advertise-http-addr", "", "address at which clients and other nodes reach the API, if another")
	f.String("advertise-raft-addr", "", "address at which other nodes reach the replication, if another")
	f.String("advertise-gossip-addr", "", "address at which other nodes reach the gossip, if another")
	f.Int("bootstrap-expect", 1, "how many nodes form the new cluster together: 1, 3, 5 or 7; 0 waits to be added to one")
	f.StringSlice("join", nil, "gossip addresses of nodes of the cluster; this node's own may be among them")
	f.Uint64("snapshot-every", 16384, "how many new log entries make a snapshot worth while")
	f.Duration("snapshot-check", time.Minute, "how often to look whether a snapshot is worth while")
	f.Uint64("snapshot-trail", 16384, "how many log entries stay after a snapshot, for nodes that are a little behind")
	f.String("log-level", "info", "what to log: trace, debug, info, warn, error or off")
	f.Bool("log-json", false, "log as JSON")
	f.String("pprof-addr", "", "address for profiles of this process; not served if empty")
}

// loadSettings reads the settings from the flags' defaults, the file, the environment and the flags, in this order.
func loadSettings(flags *pflag.FlagSet, environ []string) (settings, error) {
	path, err := configPath(flags, environ)
	if err != nil {
		return settings{}, err
	}
	k := koanf.New(".")
	if path != "" {
		if err := loadFile(k, path); err != nil {
			return settings{}, err
		}
	}
	known := keys()
	fromEnv := env.Provider(".", env.Opt{
		Prefix: envPrefix, EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) { return fromEnv(known, name, value) },
	})
	for _, source := range []koanf.Provider{fromEnv, posflag.Provider(flags, ".", k)} {
		if err := k.Load(source, nil); err != nil {
			return settings{}, fmt.Errorf("reading the settings: %w", err)
		}
	}
	var s settings
	if err := k.Unmarshal("", &s); err != nil {
		return settings{}, fmt.Errorf("reading the settings: %w", err)
	}
	return s, s.check()
}

func configPath(flags *pflag.FlagSet, environ []string) (string, error) {
	path, err := flags.GetString(configFlag)
	if err != nil || path != "" {
		return path, err
	}
	for _, pair := range environ {
		if value, found := strings.CutPrefix(pair, envPrefix+"CONFIG="); found {
			path = value
		}
	}
	return path, nil
}

// loadFile reads a YAML file. A key that does not exist is an error with its place, so that a typo is never ignored.
func loadFile(k *koanf.Koanf, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	var typed settings
	if err := yaml.UnmarshalWithOptions(text, &typed, yaml.Strict(), yaml.DisallowUnknownField()); err != nil {
		return yamlError(path, err)
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(text, &values); err != nil {
		return yamlError(path, err)
	}
	return k.Load(confmap.Provider(values, "."), nil)
}

// yamlError puts the place in front, as compilers do.
func yamlError(path string, err error) error {
	var located yaml.Error
	if errors.As(err, &located) && located.GetToken() != nil {
		at := located.GetToken().Position
		return fmt.Errorf("%s:%d:%d: %s", path, at.Line, at.Column, located.GetMessage())
	}
	return fmt.Errorf("%s: %w", path, err)
}

// keys are the names of all settings.
func keys() map[string]bool {
	known := map[string]bool{}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[settings]()) {
		known[field.Tag.Get("koanf")] = true
	}
	return known
}

// fromEnv makes QUORATE_DATA_DIR the key data-dir. Other variables with this prefix are for other commands.
func fromEnv(known map[string]bool, name, value string) (string, any) {
	key := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, envPrefix)), "_", "-")
	switch {
	case !known[key]:
		return "", nil
	case key == "join":
		return key, strings.FieldsFunc(value, func(r rune) bool { return r == ',' })
	}
	return key, value
}

// check refuses what no node could work with. What only the node itself can judge, it judges when it is opened.
func (s settings) check() error {
	var faults []error
	for _, must := range []struct{ key, value string }{{"id", s.ID}, {"data-dir", s.DataDir}} {
		if must.value == "" {
			faults = append(faults, fmt.Errorf("%s is missing: set --%s, %s, or %s in the configuration file", must.key, must.key, envName(must.key), must.key))
		}
	}
	if hclog.LevelFromString(s.LogLevel) == hclog.NoLevel {
		faults = append(faults, fmt.Errorf("log-level is %q: allowed are trace, debug, info, warn, error and off", s.LogLevel))
	}
	addresses := []struct{ key, value string }{{"http-addr", s.HTTPAddr}, {"raft-addr", s.RaftAddr}, {"gossip-addr", s.GossipAddr}}
	if s.BoskosAddr != "" {
		addresses = append(addresses, struct{ key, value string }{"boskos-addr", s.BoskosAddr})
	}
	for _, address := range addresses {
		if _, _, err := net.SplitHostPort(address.value); err != nil {
			faults = append(faults, fmt.Errorf("%s is %q: allowed is host:port", address.key, address.value))
		}
	}
	return errors.Join(faults...)
}

func envName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
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
	}
}
