// Package activity remembers what went on lately on one server: for each node of a tree and each itemized resource
// where something happens, the last 24 hours in steps of five minutes; and it reports the same as Prometheus metrics.
//
// It knows two things about the ledger. What has happened it learns from the node's feed of facts, soon and one by
// one. How things stand it learns from samples, every ten seconds and when somebody asks. All of it is in memory,
// bounded, and begins anew with the process: it is for looking, not for deciding.
package activity
