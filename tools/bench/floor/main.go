// Command floor is the smallest server that does the central job of a quorate server: it allocates and releases
// amounts at the leaves of one tree, atomically, within the limits of all nodes up to the root, and durably on a
// majority.
//
// make bench-compare measures it beside real servers to show what their additional work costs. It has no validation,
// leases, queue, idempotency, configuration, forwarding, metrics or TLS, but it cuts no corner that would make the
// comparison false: every write is synced to the disks of a majority before it is answered. It serves the same
// procedures with the same messages as a quorate server, so that one client measures both.
//
//	main.go       flags and the HTTP server
//	api.go        the Connect handlers
//	committer.go  joins concurrent calls into log entries
//	consensus.go  raft, its log store and its transport
//	fsm.go        applies entries; snapshots
//	ledger.go     the quotas
//	command.go    the format of commands in the log
//	rawload.go    loads raft alone, with entries that the FSM ignores
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

type options struct {
	id, raftAddress, httpAddress, folder, store string
	// members are the raft addresses of all nodes by id.
	members map[string]string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	o, err := parseOptions(arguments)
	if err != nil {
		return err
	}
	machine := newFSM()
	node, err := startConsensus(o, machine)
	if err != nil {
		return err
	}
	server := &http.Server{
		Addr:              o.httpAddress,
		Handler:           newHandler(newCommitter(node.raft), node.raft, machine),
		ReadHeaderTimeout: 10 * time.Second,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err = <-failed:
	case <-ctx.Done():
		err = server.Close()
	}
	return errors.Join(err, node.close())
}

func parseOptions(arguments []string) (options, error) {
	o := options{members: make(map[string]string)}
	f := flag.NewFlagSet("floor", flag.ContinueOnError)
	f.StringVar(&o.id, "id", "", "name of this node")
	f.StringVar(&o.httpAddress, "http", "", "address of the API")
	f.StringVar(&o.folder, "data", "", "folder for the log and the snapshots")
	f.StringVar(&o.store, "store", storeWAL, "log store: "+storeWAL+" or "+storeBolt)
	f.Func("members", "raft addresses of all nodes: ID=HOST:PORT, separated by commas", func(list string) error {
		for member := range strings.SplitSeq(list, ",") {
			id, address, isPair := strings.Cut(member, "=")
			if !isPair {
				return fmt.Errorf("%q is not ID=HOST:PORT", member)
			}
			o.members[id] = address
		}
		return nil
	})
	if err := f.Parse(arguments); err != nil {
		return o, err
	}
	o.raftAddress = o.members[o.id]
	if o.raftAddress == "" || o.httpAddress == "" || o.folder == "" {
		return o, errors.New("id, http, data and members are required, and id must be among the members")
	}
	return o, nil
}
