// Package simtest plays the workloads of chaos against complete nodes in virtual time, injects faults of the network
// and of nodes from a seed, and judges the histories with the same checks.
//
// Its nodes are those of cluster/clustertest with the real API server; only the network and the disks are simulated.
// The package has tests only, because no other package of chaos may depend on the server.
//
//	go test -C chaos ./simtest -args -seeds 200 -first 1000 -workload wait,lease
//
// The same seed makes the same requests and injects the same faults, but Go's scheduler influences how calls
// interleave: a seed that failed is likely to fail again, but not certain to.
package simtest
