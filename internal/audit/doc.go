// Package audit says who changed what: the records of changes, their form as lines of JSON, and the chain of hashes
// that shows whether a record was changed, removed or inserted.
//
// There are two chains. That of the ledger is made by the replicated state machine, so it is the same on every member:
// a [Ring] keeps its newest records. Each server has a chain of its own for what only that server saw, such as refused
// calls and gaps. Both are written into one file, see package sink; [Verifier] checks such a file.
//
// The package is deterministic: it reads no clock, and the bytes of a line follow from the record alone. A record never
// has a token, a hash of a secret, or user data of leases; those who make records see to that.
package audit
