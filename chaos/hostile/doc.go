// Package hostile attacks clusters of real server processes and measures what is left for other clients.
//
// It has tests only: one file for each kind of attack, one test for each variant. A test starts servers with
// startCluster, checks that they serve, attacks them, and then checks what an operator would: do all servers run and
// serve, are all acknowledged writes there, how many pairs per second (an allocation and its release) do other
// clients get, and how much memory does it take. Attackers send to loopback addresses only, a bounded number of
// times, and stop by themselves.
package hostile
