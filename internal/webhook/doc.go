// Package webhook delivers the events of a cluster to HTTP receivers.
//
// The ledger has the webhooks and how far each of them is. A [Deliverer] runs on every server and delivers while its
// server leads: one worker for each webhook reads the feed behind the cursor, posts one event after the other, and goes
// on only when the receiver has acknowledged. Once in a second what was acknowledged is reported to the ledger in one
// command, so that the next leader continues there. An event whose acknowledgement was not reported is delivered again:
// every event arrives at least once, and for the first time never before the one in front of it.
//
// Start reading at [Deliverer.Run]. hosts.go decides where servers may connect to, message.go what is sent.
package webhook
