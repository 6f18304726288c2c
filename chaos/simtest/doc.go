// Package simtest plays the workloads of chaos against whole nodes in virtual time, breaks the network and the nodes by a
// seed, and judges the histories by the same checks.
//
// Its nodes are those of cluster/clustertest with the real server of the API on top: only the wires and the disks are
// made up. All of it is tests, which may see the server; nothing else below chaos may.
//
//	go test ./chaos/simtest -args -seeds 200 -first 1000 -workload wait,lease
//
// The same seed asks for the same things and strikes the same blows, but the scheduler of Go has a say in how calls
// interleave: a seed that failed is likely to fail again, and not certain to.
package simtest
