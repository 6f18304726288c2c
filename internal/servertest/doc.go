// Package servertest starts real servers of Quorate, as processes with files and ports of their own, for tests.
//
//	func TestMain(m *testing.M) { os.Exit(servertest.Main(m)) }
//
//	func TestLeaderLoss(t *testing.T) {
//		c := servertest.StartCluster(t, servertest.Settings{Patience: time.Minute})
//		c.Run(t, "apply", "-f", "lab.yaml")
//		leader, _ := c.Leader(t)
//		leader.Kill()
//		…
//	}
//
// A step that fails ends the test. Whatever was started ends with the test that started it, and if that test has
// failed, its log has the output of each process. Variables QUORATE_* of the machine reach no process. Patience is the
// timeout of a single step on a busy machine; no step takes that long unless something is broken.
//
// StartCluster covers servers that differ only in settings. Tests with other needs take what fits: a Server with
// arguments of its own, StartProcess for any other program, FreePorts, and Client for commands and certificates.
package servertest
