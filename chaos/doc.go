// Package chaos breaks clusters of real server processes while a workload runs, and checks the recorded history against
// the promises of docs/consistency.md.
//
// It sees what a user sees: the binary, its API, signals and the disk. It never links the server.
package chaos
