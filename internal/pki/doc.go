// Package pki handles the certificates and gossip keys of a cluster: certificates that name a role, the authority that
// signs them, and the keys that encrypt gossip. A [Store] reads them from files and follows renewed ones while the
// process runs; an [Authority] makes them for clusters that have no authority of their own.
//
// A certificate names its holder by a URI among its alternative names:
//
//	quorate://cluster/<cluster>/node/<id>       a node; it may use raft and call the other nodes
//	quorate://cluster/<cluster>/client/<name>   a client
//
// Only nodes need such a URI. Clients may use any certificate of the authority.
package pki
