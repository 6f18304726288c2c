#!/usr/bin/env bash
# One would believe: a process that joins under the name of a member that is alive gets an error from Join, or becomes
# the member in place of the other.
# What happens (github.com/hashicorp/memberlist v0.6.0, DefaultLocalConfig): Join returns 1 and no error. The newcomer
# lists the whole cluster and itself, so it looks like a member from inside, while the others go on listing only the
# first process and never tell the newcomer. Only a Conflict delegate of the others hears of it. Once the first process
# has been dead for some time, the newcomer appears in their lists by itself, without another Join.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >go.mod <<'MOD'
module finding

go 1.26

require github.com/hashicorp/memberlist v0.6.0
MOD
cat >main.go <<'GO'
package main

import (
	"fmt"
	"io"
	"log"
	"time"

	"github.com/hashicorp/memberlist"
)

func create(name string) *memberlist.Memberlist {
	config := memberlist.DefaultLocalConfig()
	config.Name, config.BindAddr, config.BindPort, config.AdvertisePort = name, "127.0.0.1", 0, 0
	config.LogOutput = io.Discard
	list, err := memberlist.Create(config)
	if err != nil {
		log.Fatal(err)
	}
	return list
}

// portOf is the port under which a list has the member b, 0 if it has none.
func portOf(list *memberlist.Memberlist) (port uint16) {
	for _, n := range list.Members() {
		if n.Name == "b" {
			port = n.Port
		}
	}
	return port
}

func await(what string, condition func() bool) {
	for range 1200 {
		if condition() {
			fmt.Println(what)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	log.Fatalf("not seen in two minutes: %s", what)
}

func main() {
	seed, first := create("a"), create("b")
	if _, err := first.Join([]string{seed.LocalNode().Address()}); err != nil {
		log.Fatal(err)
	}
	firstPort := first.LocalNode().Port
	await("the seed lists the first b", func() bool { return portOf(seed) == firstPort })

	second := create("b")
	contacted, err := second.Join([]string{seed.LocalNode().Address()})
	fmt.Printf("Join of the second b: %d, %v\n", contacted, err)
	fmt.Printf("the second b lists %d members\n", second.NumMembers())
	time.Sleep(5 * time.Second)
	fmt.Println("after 5 s the seed lists the first b:", portOf(seed) == firstPort)

	if err := first.Shutdown(); err != nil {
		log.Fatal(err)
	}
	await("with the first b dead, the seed lists the second", func() bool {
		return portOf(seed) == second.LocalNode().Port
	})
}
GO
go mod tidy >/dev/null 2>&1
go run . | tee seen
diff seen - <<'SEEN'
the seed lists the first b
Join of the second b: 1, <nil>
the second b lists 2 members
after 5 s the seed lists the first b: true
with the first b dead, the seed lists the second
SEEN
echo "as described"
