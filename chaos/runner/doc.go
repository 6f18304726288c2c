// Package runner plays a run: a cluster, a workload and faults for a while, then healing, and a judgement of what was
// recorded.
package runner
