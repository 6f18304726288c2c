// Package verify has only tests: they load what deploy/ has for Compose and Kubernetes with the libraries of these, and
// start the real binary with it.
package verify
