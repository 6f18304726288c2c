package nodes

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Config says which cluster to start.
type Config struct {
	// Binary is what the nodes run.
	Binary string
	// Dir is an empty folder, for all that the nodes write. It stays; what is mounted below it goes with Close.
	Dir string
	// Size is how many nodes there are.
	Size int
	// Seed decides which packets get lost.
	Seed uint64
	// Args are more arguments of every server, Env more of its environment.
	Args, Env []string
	// Mixed is true if some nodes run a version without keys of gossip: then all others gossip in plain text too.
	Mixed bool
	// Loopback does without namespaces, PlainDisks without mounts, even where the machine has them.
	Loopback, PlainDisks bool
}

// Ports of a node that has an address of its own.
const (
	apiPort    = 7101
	raftPort   = 7201
	gossipPort = 7301
	boskosPort = 7401
)

// gossipKeyBytes is how long the key of gossip is.
const gossipKeyBytes = 32

// serverEnvironment are in the environment, because older servers do not know them as flags: the network of the nodes keeps
// strangers out, their disks are small, and a run is short.
var serverEnvironment = []string{ //nolint:gochecknoglobals // constant
	"QUORATE_INSECURE=true", "QUORATE_DISK_RESERVE=16", "QUORATE_STABILIZATION_TIME=1s", "QUORATE_RAISE_LEVEL_AFTER=2s",
}

// Cluster is a set of servers of one cluster.
type Cluster struct {
	// Nodes are the servers; n1 is the first.
	Nodes []*Node
	// Without says, one sentence each, what could not be had here.
	Without []string

	// GossipKey is the key that all nodes gossip with, unless some know none.
	GossipKey []byte

	network   *network
	keyFile   string
	addresses []nodeAddresses
	urls      []string
	boskos    []string
}

// Start makes a cluster and starts its nodes; it does not wait until they serve. Close must be called, also after an error
// in what follows.
func Start(config Config) (*Cluster, error) {
	if err := unmountOrphans(); err != nil {
		return nil, err
	}
	c := &Cluster{}
	if err := c.createNodes(config); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	for _, n := range c.Nodes {
		if err := n.Start(); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

func (c *Cluster) createNodes(config Config) error {
	if err := c.createNetwork(config); err != nil {
		return err
	}
	if err := c.makeKey(config); err != nil {
		return err
	}
	addresses, err := c.assignAddresses(config.Size)
	if err != nil {
		return err
	}
	c.addresses = addresses
	var gossip []string
	for _, a := range addresses {
		gossip = append(gossip, a.gossip)
	}
	for i, a := range addresses {
		n, err := c.addNode(config, i)
		if err != nil {
			return err
		}
		n.args = append([]string{
			"server", "--id", n.ID, "--data-dir", n.Disk.Dir, "--http-addr", a.api, "--raft-addr", a.raft,
			"--gossip-addr", a.gossip, "--boskos-addr", a.boskos, "--join", strings.Join(gossip, ","),
			"--bootstrap-expect", fmt.Sprint(config.Size),
		}, config.Args...)
		if err := c.exposeAPI(i, a); err != nil {
			return err
		}
	}
	return nil
}

// makeKey makes a key of gossip for all nodes. Versions that know no keys do not look at it.
func (c *Cluster) makeKey(config Config) error {
	c.GossipKey = make([]byte, gossipKeyBytes)
	_, _ = rand.Read(c.GossipKey) // it never fails
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of the nodes: %w", err)
	}
	c.keyFile = filepath.Join(config.Dir, "gossip.keys")
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of the nodes: %w", err)
	}
	text := base64.StdEncoding.EncodeToString(c.GossipKey) + "\n"
	if err := os.WriteFile(c.keyFile, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the key of gossip: %w", err)
	}
	return nil
}

// gossipSettings are in the environment for the same reason as settings.
func (c *Cluster) gossipSettings(config Config) []string {
	list := []string{"QUORATE_GOSSIP_KEYS_FILE=" + c.keyFile}
	if config.Mixed {
		list = append(list, "QUORATE_GOSSIP_VERIFY_INCOMING=false", "QUORATE_GOSSIP_VERIFY_OUTGOING=false")
	}
	return list
}

// createNetwork makes the network, if it may.
func (c *Cluster) createNetwork(config Config) error {
	if config.Loopback {
		c.leaveOut("faults of the network (not wanted)")
		return nil
	}
	made, err := newNetwork(config.Size, config.Seed)
	if err != nil {
		c.leaveOut(fmt.Sprintf("faults of the network (%v)", err))
		return nil // it goes on without, and says so
	}
	c.network = made
	return nil
}

func (c *Cluster) leaveOut(what string) {
	if !slices.Contains(c.Without, what) {
		c.Without = append(c.Without, what)
	}
}

func (c *Cluster) addNode(config Config, i int) (*Node, error) {
	id := fmt.Sprintf("n%d", i+1)
	below := filepath.Join(config.Dir, id)
	if err := os.MkdirAll(below, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of %s: %w", id, err)
	}
	clock, err := newClock(filepath.Join(below, "clock"))
	if err != nil {
		return nil, err
	}
	n := &Node{
		ID: id, Clock: clock, log: below + ".log", binary: config.Binary,
		env: slices.Concat([]string{clockVariable + "=" + clock.path}, serverEnvironment, c.gossipSettings(config), config.Env),
	}
	if c.network != nil {
		n.enterNamespace = func() error { return c.network.enterNamespace(i) }
	}
	c.Nodes = append(c.Nodes, n)
	if config.PlainDisks {
		c.leaveOut("faults of disks (not wanted)")
		n.Disk, err = plainDisk(below)
		return n, err
	}
	disk, without, err := newDisk(below)
	for _, w := range without {
		c.leaveOut(w)
	}
	n.Disk = disk
	return n, err
}

// Close kills what runs, removes what was mounted, and lets the namespaces go. It may be called again.
func (c *Cluster) Close() error {
	var failed []error
	for _, n := range c.Nodes {
		failed = append(failed, n.Kill())
	}
	if c.network != nil {
		failed = append(failed, c.network.shutDown())
		c.network = nil
	}
	for _, n := range c.Nodes {
		if n.Disk != nil {
			failed = append(failed, n.Disk.unmountAll())
		}
	}
	return errors.Join(failed...)
}

// URLs are the addresses of the API of all nodes. They can be reached whatever the network between the nodes is like.
func (c *Cluster) URLs() []string { return c.urls }

// Boskos are the addresses of all nodes for clients of Boskos.
func (c *Cluster) Boskos() []string { return c.boskos }

// Index finds a node by its id, or -1.
func (c *Cluster) Index(id string) int {
	for i, n := range c.Nodes {
		if n.ID == id {
			return i
		}
	}
	return -1
}

// Networked is true if the network between the nodes can be broken.
func (c *Cluster) Networked() bool { return c.network != nil }

// SetLink changes the way from one node to another, in that direction. Without a network it does nothing.
func (c *Cluster) SetLink(from, to int, link Link) {
	if c.network != nil && from != to {
		c.network.packets.setLink(from, to, link)
	}
}

// Logs is what all nodes have said.
func (c *Cluster) Logs() string {
	var b strings.Builder
	for _, n := range c.Nodes {
		fmt.Fprintf(&b, "--- %s\n%s", n.ID, n.Log())
	}
	return b.String()
}
