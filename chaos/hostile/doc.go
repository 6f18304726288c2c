// Package hostile attacks clusters of real server processes and tells what is left for everyone else.
//
// It has tests only: one file for each attack, one test for each way to carry it out. A test starts servers with startCluster, makes
// sure that they serve, attacks them, and then asks what an operator would ask: do all servers live and serve, is every
// acknowledged write there, how many pairs a second (an allocation and its release) are left for others, and how much memory did
// it take. Attackers send to addresses on loopback only, a bounded number of times, and stop by themselves.
package hostile
