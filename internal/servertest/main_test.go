package servertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// role makes the test binary another program than the tests, so that they have programs to start.
const role = "SERVERTEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		os.Exit(Main(m))
	case "ports": // holds ports until its input ends
		addresses, err := testPorts.take(context.Background(), 2*blockSize)
		fmt.Println(strings.Join(addresses, " "), err)
		_, _ = fmt.Scanln()
	case "fails":
		fmt.Println("the output")
		fmt.Fprintln(os.Stderr, "the reason")
		os.Exit(7)
	case "dies": // leaves a process behind, as tests do that take too long
		child := exec.Command(os.Args[0])
		child.Env = append(Environment(), role+"=runs")
		killWithParent(child)
		if err := child.Start(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(child.Process.Pid)
		os.Exit(0)
	case "runs":
		fmt.Println("started")
		select {}
	}
}

func thisBinary(t *testing.T, as string) *exec.Cmd {
	t.Helper()
	file, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(file)
	command.Env = append(Environment(), role+"="+as)
	return command
}

// recorder is a test that may fail: it records what it says and runs its cleanups when told so.
type recorder struct {
	testing.TB

	said     strings.Builder
	failed   bool
	cleanups []func()
}

func (r *recorder) Helper()           {}
func (r *recorder) Failed() bool      { return r.failed }
func (r *recorder) Cleanup(do func()) { r.cleanups = append(r.cleanups, do) }
func (r *recorder) TempDir() string   { return os.TempDir() }

func (r *recorder) Logf(format string, args ...any) { fmt.Fprintf(&r.said, format+"\n", args...) }

func (r *recorder) Fatal(args ...any) { r.Fatalf("%s", fmt.Sprint(args...)) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.Logf(format, args...)
	r.failed = true
	runtime.Goexit()
}

func record(t *testing.T, test func(*recorder)) *recorder {
	t.Helper()
	r, ended := &recorder{TB: t}, make(chan struct{})
	go func() {
		defer close(ended)
		test(r)
	}()
	<-ended
	return r
}

func (r *recorder) end() {
	for _, cleanup := range slices.Backward(r.cleanups) {
		cleanup()
	}
}
