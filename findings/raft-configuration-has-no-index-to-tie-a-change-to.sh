#!/usr/bin/env bash
# One would believe: GetConfiguration answers the configuration with the index of its log entry, and passing that index
# as prevIndex of the next change lets it happen only if nobody else has changed the members since.
# What happens (github.com/hashicorp/raft v1.7.3): the Index of GetConfiguration is 0, whatever the configuration, and 0
# as prevIndex is no condition. So two callers that have read the same configuration both succeed, and the second change
# undoes the first. The condition works with the Index of the future of an earlier change, which only its caller has.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat >go.mod <<'MOD'
module finding

go 1.26

require (
	github.com/hashicorp/go-hclog v1.6.3
	github.com/hashicorp/raft v1.7.3
)
MOD
cat >main.go <<'GO'
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

type machine struct{}

func (machine) Apply(*raft.Log) any                 { return nil }
func (machine) Snapshot() (raft.FSMSnapshot, error) { return nil, errors.New("there are no snapshots") }
func (machine) Restore(io.ReadCloser) error         { return nil }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func startLeader() *raft.Raft {
	config := raft.DefaultConfig()
	config.LocalID, config.Logger = "n1", hclog.NewNullLogger()
	store, snapshots := raft.NewInmemStore(), raft.NewInmemSnapshotStore()
	address, transport := raft.NewInmemTransport("n1")
	check(raft.BootstrapCluster(config, store, store, snapshots, transport, raft.Configuration{
		Servers: []raft.Server{{ID: "n1", Address: address}},
	}))
	node, err := raft.NewRaft(config, machine{}, store, store, snapshots, transport)
	check(err)
	for node.State() != raft.Leader {
		time.Sleep(10 * time.Millisecond)
	}
	check(node.Barrier(0).Error())
	return node
}

func main() {
	node := startLeader()
	first := node.AddNonvoter("n2", "first:1", 0, 0)
	check(first.Error())

	read := node.GetConfiguration()
	check(read.Error())
	fmt.Println("the last change has an index:", first.Index() > 0)
	fmt.Println("the configuration that it made has the index:", read.Index())

	// Two callers have read the same, and change what they have read.
	one := node.RemoveServer("n2", read.Index(), 0).Error()
	two := node.AddNonvoter("n2", "second:1", read.Index(), 0).Error()
	fmt.Println("both changes of what was read:", one, two)

	// The index of an earlier change is a condition.
	fmt.Println("a change tied to the index of the first one:", node.RemoveServer("n2", first.Index(), 0).Error() != nil)
}
GO
go mod tidy >/dev/null 2>&1
go run . | tee seen
diff - seen <<'SEEN'
the last change has an index: true
the configuration that it made has the index: 0
both changes of what was read: <nil> <nil>
a change tied to the index of the first one: true
SEEN
echo "as described"
