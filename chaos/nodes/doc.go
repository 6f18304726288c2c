// Package nodes runs clusters of real server processes that can be broken: each in a network namespace of its own, joined
// by a switch in this process, on a disk that this process can make slow, full or broken, by a clock that it can turn.
//
// What a machine does not allow is left out, and Cluster.Without says so: without namespaces nodes share the loopback
// interface and the network between them cannot be broken. Nothing outlives this process: servers die with it, a namespace
// goes with the last who holds it, and mounts carry the number of the process, so that the next Start removes what a
// crashed one has left.
package nodes
