package systems

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
)

type quorate struct {
	processGroup
	name, binary string
	// flags are additional flags of the servers.
	command   []string // that starts a server
	flags     []string
	addresses []string
	urls      []string
	transport *http.Transport
	guard     *guard
}

// logStoreFlag selects the log store of servers that have several.
const logStoreFlag = "--log-store"

// startCommand starts a server.
var startCommand = []string{"server", "run"}

// NewQuorate returns a system for each log store of the server in a file. Servers without a choice have "bolt". The
// name of a system is the prefix and its log store.
func NewQuorate(ctx context.Context, binary, prefix string) ([]System, error) {
	help, err := exec.CommandContext(ctx, binary, "server", "run", "--help").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s server run --help: %w: %s", binary, err, help)
	}
	command := startCommand
	if !strings.Contains(string(help), strings.Join(command, " ")) {
		command = command[:1] // a revision from before this name
	}
	made := func(store string, flags ...string) System {
		return &quorate{name: prefix + store, binary: binary, command: command, flags: flags, transport: newTransport()}
	}
	if !strings.Contains(string(help), logStoreFlag) {
		return []System{made("bolt")}, nil
	}
	return []System{made("wal", logStoreFlag, "wal"), made("bolt", logStoreFlag, "bolt")}, nil
}

func (q *quorate) Name() string { return q.name }

func (q *quorate) Supports(c Case) bool {
	if c.Watchers > 0 && q.guard != nil {
		return false // one user may not have so many streams
	}
	return c.Kind == Pairs || c.Kind == Reads
}

func (q *quorate) Start(ctx context.Context, folder string) error {
	addresses, err := freeAddresses(ctx, 3*nodeCount)
	if err != nil {
		return err
	}
	gossip := addresses[2*nodeCount:]
	flags, secret := q.flags, ""
	if q.guard != nil {
		var path string
		if path, secret, err = writeSecret(folder); err != nil {
			return err
		}
		flags = append(slices.Clone(flags), bootstrapFlag, path)
	}
	for i := range nodeCount {
		id := fmt.Sprintf("n%d", i+1)
		arguments := append(slices.Concat(q.command, []string{
			"--id", id, "--data-dir", filepath.Join(folder, id),
			"--http-addr", addresses[i], "--raft-addr", addresses[nodeCount+i], "--gossip-addr", gossip[i],
			"--join", strings.Join(gossip, ","), "--bootstrap-expect", fmt.Sprint(nodeCount), "--log-level", "warn",
			"--max-streams", fmt.Sprint(mostStreams),
		}), flags...)
		started, err := startProcess(id, folder, exec.Command(q.binary, arguments...)) //nolint:noctx // Stop ends it
		if err != nil {
			return err
		}
		q.processGroup = append(q.processGroup, started)
		q.addresses = append(q.addresses, addresses[i])
		q.urls = append(q.urls, "http://"+addresses[i])
	}
	if err := q.await(ctx, "wait for all servers", q.checkComplete); err != nil {
		return err
	}
	if _, err = q.trees(0).ApplyTrees(ctx, newTree()); err != nil || q.guard == nil {
		return err
	}
	return q.guardCluster(ctx, secret)
}

func (q *quorate) Resume(ctx context.Context) error {
	if err := q.signalAll(syscall.SIGCONT); err != nil {
		return err
	}
	return q.await(ctx, "wait for all servers", func(ctx context.Context) error {
		return errors.Join(q.checkComplete(ctx), q.CheckEmpty(ctx))
	})
}

// newTree has the limits of the tree that all systems have.
func newTree() *quoratev1.ApplyTreesRequest {
	limits := func() map[string]*quoratev1.Limit {
		plenty := &quoratev1.Limit{Value: &quoratev1.Limit_Amount{Amount: nodeLimit}}
		return map[string]*quoratev1.Limit{"cpu": plenty, "memory": plenty}
	}
	tree := &quoratev1.Tree{
		Name:      treeName,
		Resources: []*quoratev1.Resource{{Name: "cpu"}, {Name: "memory"}},
		Nodes:     []*quoratev1.Node{{Path: topNode, Limits: limits()}, {Path: middleNode, Limits: limits()}},
	}
	for i := range leafCount {
		tree.Nodes = append(tree.Nodes, &quoratev1.Node{Path: leafNode(i), Limits: limits()})
	}
	return &quoratev1.ApplyTreesRequest{
		Trees: []*quoratev1.Tree{tree}, Actor: "compare", Reason: "measurement", RequestId: "compare",
	}
}

func (q *quorate) httpClient() *http.Client { return &http.Client{Transport: q.transport} }

func (q *quorate) trees(node int) quoratev1connect.TreeServiceClient {
	return quoratev1connect.NewTreeServiceClient(q.httpClient(), q.urls[node], q.asAdmin()...)
}

func (q *quorate) status(ctx context.Context) (*adminv1.GetStatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return adminv1connect.NewClusterServiceClient(q.httpClient(), q.urls[0], q.asAdmin()...).
		GetStatus(ctx, &adminv1.GetStatusRequest{})
}

// checkComplete returns an error until all nodes are voters.
func (q *quorate) checkComplete(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := adminv1connect.NewClusterServiceClient(q.httpClient(), q.urls[0], q.asAdmin()...).
		ListMembers(ctx, &adminv1.ListMembersRequest{})
	if err != nil {
		return err
	}
	if list.GetHealthyVoters() < nodeCount || list.GetLeaderId() == "" {
		return fmt.Errorf("%d voters, leader %q: %s", list.GetHealthyVoters(), list.GetLeaderId(), list.GetProblem())
	}
	return nil
}

func (q *quorate) Leader(ctx context.Context) (int, error) {
	s, err := q.status(ctx)
	if err != nil {
		return 0, err
	}
	for i, p := range q.Processes() {
		if p.Name == s.GetLeaderId() {
			return i, nil
		}
	}
	return 0, errors.New("no server leads")
}

func (q *quorate) Measure(ctx context.Context, c Case, w Window) (Work, error) {
	node, err := q.Leader(ctx)
	if err != nil {
		return Work{}, err
	}
	if c.Follower {
		node = (node + 1) % nodeCount
	}
	stop, err := q.watchIdly(ctx, node, c.Watchers)
	if err != nil {
		return Work{}, err
	}
	defer stop()
	if c.Kind == Reads {
		return measureCallers(ctx, c, w, q.readers(node))
	}
	if !c.Client {
		return measureCallers(ctx, c, w, pairCallers(c, newLeanClient(q.transport, q.urls[node], q.asCaller()...)))
	}
	var options []client.Option
	if q.guard != nil {
		options = append(options, client.WithTokenSource(
			func(context.Context) (string, error) { return q.guard.holder, nil }))
	}
	made, err := client.New([]string{q.urls[node]}, options...)
	if err != nil {
		return Work{}, err
	}
	return measureCallers(ctx, c, w, pairCallers(c, made.Allocations))
}

func (q *quorate) readers(node int) callers {
	trees := quoratev1connect.NewTreeServiceClient(q.httpClient(), q.urls[node], q.asCaller()...)
	request := &quoratev1.GetUsageRequest{Tree: treeName, Node: leafNode(0)}
	return func(int) callerWork {
		return func(ctx context.Context, it *iteration) error {
			return it.call(1, func() error {
				answer, err := trees.GetUsage(ctx, request)
				if err == nil && len(answer.GetNodes()) != 1 {
					err = fmt.Errorf("usage of %d nodes", len(answer.GetNodes()))
				}
				return err
			})
		}
	}
}

func (q *quorate) CheckEmpty(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	usage, err := q.trees(0).GetUsage(ctx, &quoratev1.GetUsageRequest{Tree: treeName, Node: topNode})
	if err != nil {
		return err
	}
	for _, node := range usage.GetNodes() {
		for _, r := range node.GetResources() {
			if r.GetSubtree() != 0 {
				return fmt.Errorf("%d of %s are left in use", r.GetSubtree(), r.GetResource())
			}
		}
	}
	s, err := q.status(ctx)
	if err == nil && s.GetHeldAllocations() != 0 {
		err = fmt.Errorf("%d allocations are left", s.GetHeldAllocations())
	}
	return err
}

func (q *quorate) Stop() error {
	q.transport.CloseIdleConnections()
	return q.stopAll(syscall.SIGTERM)
}

func isNotFound(err error) bool { return connect.CodeOf(err) == connect.CodeNotFound }
