// Package validate tests that the answers of real servers are those that the OpenAPI document describes which they
// serve: a call of every procedure, denials and errors of each status, and a stream. Public generators make clients of the
// document in Go (goclient) and TypeScript (typescript), and a program with each of them calls real servers.
//
// It is a module of its own, so that the product does not require the validator. `make openapi-test` runs it.
package validate
