// Package conformance tests that package rest answers clients of Keystone right from the trees of a real server.
//
// It is beside package rest because a server takes minutes to compile for fuzzing.
package conformance
