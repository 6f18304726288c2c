// Package rest answers Keystone's API of unified limits from trees, so that services with oslo.limit are held to them.
//
// Start with [NewHandler], which lists the calls; share.go says which number a project is told, directory.go how ids of
// Keystone stand for trees, nodes and resources.
package rest
