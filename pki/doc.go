// Package pki keeps what the processes of a cluster prove themselves with: certificates that name a role, the
// authority that signs them, and the keys of gossip. It reads them from files, takes renewed ones while the process
// runs, and makes them for clusters without an authority of their own.
//
// A certificate names its holder by a URI among its alternative names:
//
//	quorate://cluster/<cluster>/node/<id>       a node; it may speak raft and ask the other nodes
//	quorate://cluster/<cluster>/client/<name>   a client
//
// Only nodes need one. Clients may use any certificate of the authority.
package pki
