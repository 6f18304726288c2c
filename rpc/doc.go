// Package rpc is the door of a node: it takes calls over HTTP, carries writes to the leader, translates between the wire
// and the ledger, and answers.
//
// One port serves gRPC, gRPC-Web, Connect and plain JSON (HTTP/1.1 and unencrypted HTTP/2). A call passes, in this
// order: observe (log and metrics), guard (panics), the deadline, the body limit, the count of elements, forward (a follower
// relays a write to the leader, once), decoding, validation, and then a handler that converts, asks the node and converts back.
//
// There is one table from refusals to codes (errors.go) and no other place that chooses a code.
package rpc
