// Package rpc serves the API of a node over HTTP.
//
// One port serves gRPC, gRPC-Web, Connect and plain JSON over HTTP/1.1 and HTTP/2. [New] puts a server together from
// the packages below; server.go, at clientRoutes, lists the steps that a call passes
// ([github.com/quorate/quorate/rpc/pipeline]):
//
//   - screen.go: what carries the call (the page in a browser, the host, the certificate of the connection)
//   - [github.com/quorate/quorate/rpc/observe]: request id, log, metrics, traces, recovery from panics
//   - [github.com/quorate/quorate/rpc/admission]: whether there is room, shares of callers, deadlines, sizes of
//     bodies and requests
//   - [github.com/quorate/quorate/rpc/relay]: a follower relays a write to the leader, once
//   - [github.com/quorate/quorate/rpc/codec]: decoding within bounds; then the rules of the schema are
//     checked (intercept.go)
//   - [github.com/quorate/quorate/rpc/handlers]: a handler converts the request, asks the node, and converts the answer
//   - [github.com/quorate/quorate/rpc/wire]: those conversions, and the one table from refusals and errors to codes
//
// Other nodes call over a listener of their own (nodes.go). Front ends, which speak the protocols of other systems,
// call the same handlers by generated clients without a socket (frontend.go,
// [github.com/quorate/quorate/rpc/inprocess]).
package rpc
