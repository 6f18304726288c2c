// Package raftguard stands between Quorate and the open faults of hashicorp/raft: it wraps raft's transport and stores
// so that each known fault is prevented, noticed or repaired.
//
// DESIGN.md beside this file names every fault, what we do about it, and what would let us drop the guard again.
// The negative controls in this package reproduce each fault without its guard, so that neither can rot in silence.
package raftguard
