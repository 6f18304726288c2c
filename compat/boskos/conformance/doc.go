// Package conformance lets the unmodified clients of Boskos, its Go library and its command line, loose on a cluster of
// real nodes. It is a module of its own, so that what they need does not become what Quorate needs.
package conformance
