// Package identify finds out who makes a call, before anything of its body is read, and ends streams whose credential
// no longer holds.
//
// [Identifier.Authenticate] is a step of the pipeline: it gives each call its caller, which [CallerOf] returns. Who the
// caller is comes from its credential (package authn) and from the access book of the cluster, which also says what a
// bad credential means: in an open or a watching cluster its caller is anonymous, in a guarded one the call is refused.
// What a caller may do is not decided here.
//
// A call that another node relays carries its credential again ([PassOn]), and is authenticated again: no node believes
// another one about the caller of a call. The one exception is that a node has seen the handshake of a client
// certificate, which it says in the headers of RFC 9440; see step.go.
package identify
