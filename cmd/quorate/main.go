// Command quorate is the server and its command line client in one binary.
//
// The commands are in packages by purpose, each with a function Commands: config (manifests, limits, history), request
// (allocations and decisions), lease (leases, items, the queue), usage (limits and usage), access (who may do what),
// operate (members, backups, certificates), node (server, dev, demo) and bench. Package cli has what they share.
// This package only puts them together.
package main

import "os"

// version is set by the build.
var version = "devel"

func main() {
	os.Exit(execute(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
