// Package faults breaks a cluster of chaos/nodes in all the ways that it should survive, and puts it right again.
//
// A Fault is drawn from a seed before it begins; only who leads is looked up when it does. The faults keep within what the
// service promises to survive: what is on disk is taken from one node at a time, and only when a majority of the others has
// everything that was acknowledged.
package faults
