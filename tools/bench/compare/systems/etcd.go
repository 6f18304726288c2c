package systems

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// etcd is three nodes of etcd. A node of the tree is a key with its usage and its limits. A caller allocates by one
// transaction that compares the revisions of three nodes, and writes them and the allocation. If another caller was
// faster, the same transaction reads the nodes instead, and the caller tries again at once, as etcd's own package for
// transactions does. A caller keeps what it knows of the nodes, so that an uncontended pair costs two transactions.
type etcd struct {
	processGroup
	binary  string
	clients []*etcdClient
}

// NewEtcd returns three nodes of the installed etcd, or why there are none.
func NewEtcd() (system System, missing string) {
	binary, err := exec.LookPath("etcd")
	if err != nil {
		return nil, "etcd is not installed: apt-get install etcd-server"
	}
	return &etcd{binary: binary}, ""
}

func (*etcd) Name() string { return "etcd" }

func (*etcd) Supports(c Case) bool { return unaryPairs(c) && (c.Callers == 1 || c.Callers == 64) }

func (e *etcd) Start(ctx context.Context, folder string) error {
	addresses, err := freeAddresses(ctx, 2*nodeCount)
	if err != nil {
		return err
	}
	var members []string
	for i := range nodeCount {
		members = append(members, fmt.Sprintf("n%d=http://%s", i+1, addresses[nodeCount+i]))
	}
	for i := range nodeCount {
		id, api, peer := fmt.Sprintf("n%d", i+1), "http://"+addresses[i], "http://"+addresses[nodeCount+i]
		cmd := exec.Command(e.binary, "--name", id, "--data-dir", filepath.Join(folder, id), //nolint:noctx // Stop ends it
			"--listen-client-urls", api, "--advertise-client-urls", api,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--initial-cluster", strings.Join(members, ","), "--initial-cluster-state", "new",
			"--logger", "zap", "--log-level", "error")
		started, err := startProcess(id, folder, cmd)
		if err != nil {
			return err
		}
		e.processGroup = append(e.processGroup, started)
		e.clients = append(e.clients, newEtcdClient(api))
	}
	return e.await(ctx, "wait for etcd", e.CheckEmpty)
}

func (e *etcd) Resume(ctx context.Context) error {
	return errors.Join(e.signalAll(syscall.SIGCONT), e.await(ctx, "wait for etcd", e.CheckEmpty))
}

func (e *etcd) Leader(ctx context.Context) (int, error) {
	for i, c := range e.clients {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		s, err := c.call(ctx, etcdStatusMethod, nil)
		cancel()
		if err == nil && s.leaderID != 0 && s.memberID == s.leaderID {
			return i, nil
		}
	}
	return 0, errors.New("no node of etcd leads")
}

func (e *etcd) Measure(ctx context.Context, c Case, w Window) (Work, error) {
	leader, err := e.Leader(ctx)
	if err != nil {
		return Work{}, err
	}
	window := windows.Add(1)
	return measureCallers(ctx, c, w, func(number int) callerWork {
		tree := 0
		if c.Spread {
			tree = number
		}
		caller := newEtcdCaller(e.clients[leader], tree)
		return func(ctx context.Context, it *iteration) error {
			id := fmt.Appendf(nil, "allocation/%d-%d", window, it.Number)
			return it.callPair(1,
				func() error { return caller.charge(ctx, id, 1) },
				func() error { return caller.charge(ctx, id, -1) })
		}
	})
}

type etcdNode struct {
	key      []byte
	revision int64 // 0 if the node does not exist
	used     [2]int64
	limits   [2]int64
}

func (n etcdNode) value() []byte {
	var b []byte
	for _, v := range [...]int64{n.used[0], n.used[1], n.limits[0], n.limits[1]} {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return b
}

func (n *etcdNode) setValue(value []byte) error {
	if len(value) != len(n.value()) {
		return fmt.Errorf("node %s has %d bytes", n.key, len(value))
	}
	for i, v := range []*int64{&n.used[0], &n.used[1], &n.limits[0], &n.limits[1]} {
		*v = int64(binary.LittleEndian.Uint64(value[8*i:]))
	}
	return nil
}

type etcdCaller struct {
	client *etcdClient
	nodes  [3]etcdNode
}

func newEtcdCaller(client *etcdClient, tree int) *etcdCaller {
	c := &etcdCaller{client: client}
	for i, path := range [...]string{topNode, middleNode, leafNode(0)} {
		c.nodes[i] = etcdNode{key: fmt.Appendf(nil, "node/%d/%s", tree, path), limits: [2]int64{nodeLimit, nodeLimit}}
	}
	return c
}

// charge takes the sign 1 to allocate and -1 to release one unit of both resources. A node that does not exist is made.
func (c *etcdCaller) charge(ctx context.Context, id []byte, sign int64) error {
	for {
		changed := c.nodes
		t := etcdTransaction{}
		for i := range changed {
			n := &changed[i]
			for r := range n.used {
				if n.used[r] += sign; n.used[r] > n.limits[r] {
					return fmt.Errorf("node %s is full", n.key)
				}
			}
			t.guards = append(t.guards, etcdGuard{n.key, n.revision})
			t.writes = append(t.writes, etcdPut{n.key, n.value()})
			t.reads = append(t.reads, etcdRead{key: n.key})
		}
		allocation := etcdPut{key: id}
		if sign > 0 {
			allocation.value = changed[len(changed)-1].key
		}
		t.writes = append(t.writes, allocation)
		answer, err := c.client.call(ctx, etcdTxnMethod, t.marshal())
		if err != nil {
			return err
		}
		if answer.succeeded {
			for i := range changed {
				changed[i].revision = answer.revision
			}
			c.nodes = changed
			return nil
		}
		if err := c.learn(answer.pairs); err != nil {
			return err
		}
	}
}

func (c *etcdCaller) learn(pairs []etcdPair) error {
	for i := range c.nodes {
		n := &c.nodes[i]
		for _, p := range pairs {
			if string(p.key) == string(n.key) {
				n.revision = p.revision
				if err := n.setValue(p.value); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (e *etcd) CheckEmpty(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, err := e.Leader(ctx); err != nil {
		return err
	}
	left, err := e.clients[0].call(ctx, etcdRangeMethod,
		(&etcdRead{key: []byte("allocation/"), rangeEnd: []byte("allocation0"), countOnly: true}).marshal())
	if err != nil {
		return err
	}
	if left.count != 0 {
		return fmt.Errorf("%d allocations are left", left.count)
	}
	nodes, err := e.clients[0].call(ctx, etcdRangeMethod,
		(&etcdRead{key: []byte("node/"), rangeEnd: []byte("node0")}).marshal())
	if err != nil {
		return err
	}
	for _, p := range nodes.pairs {
		n := etcdNode{key: p.key}
		if err := n.setValue(p.value); err != nil {
			return err
		}
		if n.used != [2]int64{} {
			return fmt.Errorf("node %s has %v in use", p.key, n.used)
		}
	}
	return nil
}

func (e *etcd) Stop() error {
	for _, c := range e.clients {
		c.http.CloseIdleConnections()
	}
	return e.stopAll(syscall.SIGTERM)
}
