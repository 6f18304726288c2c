// Command quorate is the server and its command line client in one binary.
//
// The commands are in packages by purpose, each with a function Commands: config (manifests, limits, history), request
// (allocations and decisions), lease (leases, items, the queue), usage (limits and usage), top (a screen that follows
// the cluster), access (who may do what), operate (members, backups, certificates), node (server, dev, demo) and bench.
// Package cli has what they share. This package only puts them together.
package main

import "os"

// version, commit and date are set by the build: what was built, the commit, and the time of the commit (RFC 3339).
// Without them they are what the Go tools know, see [buildOf].
var (
	version = "devel"
	commit  string
	date    string
)

func main() {
	os.Exit(execute(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
