//go:build unix

package bench

import (
	"runtime"
	"time"
)

// cpuUsage measures the CPU time of the servers of --cluster and of the whole machine during a measurement.
type cpuUsage struct {
	cluster          *ownCluster // nil without --cluster
	servers, machine time.Duration
}

func (u *cpuUsage) begin() { u.servers, u.machine = u.read() }

func (u *cpuUsage) end() {
	servers, machine := u.read()
	u.servers, u.machine = servers-u.servers, machine-u.machine
}

func (u *cpuUsage) read() (servers, machine time.Duration) {
	if u.cluster != nil {
		servers = u.cluster.cpuTime()
	}
	return servers, machineCPUTime()
}

func (u *cpuUsage) report(run *Run) {
	run.CPUs = runtime.NumCPU()
	if run.ElapsedSeconds <= 0 {
		return
	}
	run.ServersCPU = u.servers.Seconds() / run.ElapsedSeconds
	// The three are not read at the same instant, so the difference of a quiet machine may be slightly negative.
	run.OthersCPU = max(u.machine.Seconds()/run.ElapsedSeconds-run.ServersCPU-run.GeneratorCPU, 0)
}
