// Package nodes runs clusters of real server processes with faults: each server has its own network namespace,
// connected by a packet switch in this process, a disk that can be slow, full or broken, and a wall clock that can be
// set.
//
// Faults that the machine does not support are left out, and Cluster.Without says so: without namespaces the nodes
// share the loopback interface and the network between them has no faults. Nothing outlives this process: servers are
// killed with it, a namespace ends with its last process, and mounts carry the process id of the harness, so that the
// next Start removes the mounts of a harness that crashed.
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
	"sync"
)

// Config says how to start a cluster.
type Config struct {
	// Binary is the server that the nodes run.
	Binary string
	// Dir is an empty folder for all files of the nodes. It stays; Close removes what is mounted below it.
	Dir string
	// Size is the number of nodes.
	Size int
	// Seed decides which packets are lost.
	Seed uint64
	// Args are additional arguments of every server, Env additional environment variables.
	Args, Env []string
	// LogStores are the log stores of the nodes in turn; empty for the default of the server.
	LogStores []string
	// Mixed is true if some nodes run a version without gossip keys. Then the other nodes accept and send plain
	// gossip too.
	Mixed bool
	// Loopback and PlainDisks do without namespaces and without mounts even if the machine supports them.
	Loopback, PlainDisks bool
}

// Ports of a node with its own IP address.
const (
	apiPort    = 7101
	raftPort   = 7201
	gossipPort = 7301
	boskosPort = 7401
	// receiverPort is that of what this process serves for nodes.
	receiverPort = 7501
)

// gossipKeyBytes is the size of the gossip key.
const gossipKeyBytes = 32

// serverEnvironment holds settings that older servers do not know as flags. The nodes' network is closed to others,
// their disks are small, and runs are short.
var serverEnvironment = []string{ //nolint:gochecknoglobals // constant
	"QUORATE_SERVER_INSECURE=true", "QUORATE_SERVER_DISK_RESERVE=16", "QUORATE_SERVER_STABILIZATION_TIME=1s",
	"QUORATE_SERVER_RAISE_LEVEL_AFTER=2s",
}

// Cluster is a set of servers of one cluster.
type Cluster struct {
	// Nodes are the servers; n1 is the first.
	Nodes []*Node
	// Without says what this machine does not support, one sentence each.
	Without []string

	// GossipKey is the gossip key of all nodes, unless some versions have none.
	GossipKey []byte

	network *network
	keyFile string
	// args are the additional arguments of every server.
	args   []string
	urls   []string
	boskos []string

	mu        sync.Mutex
	addresses []nodeAddresses
	// moves is how often all nodes got other addresses.
	moves int
}

// Start creates a cluster and starts its nodes. It does not wait until they serve. After a success the caller must
// call Close.
func Start(config Config) (*Cluster, error) {
	if err := unmountOrphans(); err != nil {
		return nil, err
	}
	c := &Cluster{args: config.Args}
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
	for i := range addresses {
		if err := errors.Join(c.addNode(config, i), c.exposeAPI(i)); err != nil {
			return err
		}
	}
	c.setServerArgs()
	return nil
}

// setServerArgs tells all nodes the addresses with which they start next.
func (c *Cluster) setServerArgs() {
	var gossip []string
	for _, a := range c.addresses {
		gossip = append(gossip, a.gossip)
	}
	for i, n := range c.Nodes {
		a := c.addresses[i]
		n.setArgs(append([]string{
			"server", "run", "--id", n.ID, "--data-dir", n.Disk.Dir, "--http-addr", a.api, "--raft-addr", a.raft,
			"--gossip-addr", a.gossip, "--front-ends", "boskos=" + a.boskos + ",yunikorn", "--join", strings.Join(gossip, ","),
			"--bootstrap-expect", fmt.Sprint(len(c.Nodes)),
		}, c.args...))
	}
}

// makeKey creates the gossip key of all nodes. Versions without gossip keys ignore it.
func (c *Cluster) makeKey(config Config) error {
	c.GossipKey = make([]byte, gossipKeyBytes)
	_, _ = rand.Read(c.GossipKey) // never fails
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of the nodes: %w", err)
	}
	c.keyFile = filepath.Join(config.Dir, "gossip.keys")
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of the nodes: %w", err)
	}
	text := base64.StdEncoding.EncodeToString(c.GossipKey) + "\n"
	if err := os.WriteFile(c.keyFile, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the gossip key: %w", err)
	}
	return nil
}

// gossipSettings are environment variables for the same reason as serverEnvironment.
func (c *Cluster) gossipSettings(config Config) []string {
	list := []string{"QUORATE_SERVER_GOSSIP_KEYS_FILE=" + c.keyFile}
	if config.Mixed {
		list = append(list, "QUORATE_SERVER_GOSSIP_VERIFY_INCOMING=false", "QUORATE_SERVER_GOSSIP_VERIFY_OUTGOING=false")
	}
	return list
}

// createNetwork creates the network between the nodes if the machine supports it.
func (c *Cluster) createNetwork(config Config) error {
	if config.Loopback {
		c.leaveOut("faults of the network (disabled)")
		return nil
	}
	made, err := newNetwork(config.Size, config.Seed)
	if err != nil {
		c.leaveOut(fmt.Sprintf("faults of the network (%v)", err))
		return nil // the run goes on without, and reports it
	}
	c.network = made
	return nil
}

func (c *Cluster) leaveOut(what string) {
	if !slices.Contains(c.Without, what) {
		c.Without = append(c.Without, what)
	}
}

func (c *Cluster) addNode(config Config, i int) error {
	id := fmt.Sprintf("n%d", i+1)
	below := filepath.Join(config.Dir, id)
	if err := os.MkdirAll(below, 0o700); err != nil {
		return fmt.Errorf("make the folder of %s: %w", id, err)
	}
	clock, err := newClock(filepath.Join(below, "clock"))
	if err != nil {
		return err
	}
	n := &Node{
		ID: id, Clock: clock, log: below + ".log", binary: config.Binary,
		env: slices.Concat([]string{clockVariable + "=" + clock.path}, serverEnvironment, c.gossipSettings(config),
			config.Env),
	}
	if count := len(config.LogStores); count > 0 {
		n.env = append(n.env, "QUORATE_SERVER_LOG_STORE="+config.LogStores[i%count])
	}
	if c.network != nil {
		n.enterNamespace = func() error { return c.network.enterNamespace(i) }
	}
	c.Nodes = append(c.Nodes, n)
	if config.PlainDisks {
		c.leaveOut("faults of disks (disabled)")
		n.Disk, err = plainDisk(below)
		return err
	}
	disk, without, err := newDisk(below)
	for _, w := range without {
		c.leaveOut(w)
	}
	n.Disk = disk
	return err
}

// Close kills all nodes, removes the mounts and closes the namespaces. It may be called more than once.
func (c *Cluster) Close() error {
	var failed []error
	for _, n := range c.Nodes {
		if n.Disk != nil {
			n.Disk.ClearFaults() // a process that waits for its disk cannot be killed
		}
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

// URLs returns the API addresses of all nodes. Faults of the network do not affect them.
func (c *Cluster) URLs() []string { return c.urls }

// Boskos returns the addresses of all nodes for Boskos clients.
func (c *Cluster) Boskos() []string { return c.boskos }

// Index returns the index of the node with an id, or -1.
func (c *Cluster) Index(id string) int {
	for i, n := range c.Nodes {
		if n.ID == id {
			return i
		}
	}
	return -1
}

// Networked reports whether the network between the nodes can have faults.
func (c *Cluster) Networked() bool { return c.network != nil }

// SetLink changes the link from one node to another, in that direction only. Without a network it does nothing.
func (c *Cluster) SetLink(from, to int, link Link) {
	if c.network != nil && from != to {
		c.network.packets.setLink(from, to, link)
	}
}

// Logs returns the logs of all nodes.
func (c *Cluster) Logs() string {
	var b strings.Builder
	for _, n := range c.Nodes {
		fmt.Fprintf(&b, "--- %s\n%s", n.ID, n.Log())
	}
	return b.String()
}
