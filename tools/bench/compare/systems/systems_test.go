package systems

import (
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

func TestCaseNamesAreUnique(t *testing.T) {
	var names []string
	for _, c := range Cases() {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	if unique := slices.Compact(slices.Clone(names)); len(unique) != len(names) {
		t.Errorf("names are %v", names)
	}
}

func TestOperationsCountWhereTheyEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun, ended time.Time
		c := &counter{window: Window{
			Duration: 2 * time.Second,
			Begin:    func() { begun = time.Now() }, End: func() { ended = time.Now() },
		}}
		c.add(1)
		c.open()
		c.add(20)
		time.Sleep(time.Second)
		c.add(300)
		time.Sleep(2 * time.Second)
		c.add(4000)
		c.finish()
		if c.ended != 320 {
			t.Errorf("%d operations count, want the 320 between begin and end", c.ended)
		}
		if took := ended.Sub(begun); took != 2*time.Second || c.span != took {
			t.Errorf("the window took %v, and %v are reported", took, c.span)
		}
	})
}

// TestASlowSystemHasAFigure: a window in which nothing ended closes when the first operation ends, or without one when
// all callers have.
func TestASlowSystemHasAFigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := 0
		w := Window{Duration: time.Second, Begin: func() {}, End: func() { closed++ }}
		c := &counter{window: w}
		c.open()
		time.Sleep(5 * time.Second)
		c.add(0)
		c.add(7)
		c.add(7)
		c.finish()
		if c.ended != 7 || c.span != 5*time.Second || closed != 1 {
			t.Errorf("%d operations in %v, closed %d times; want 7 in 5s, once", c.ended, c.span, closed)
		}
		c = &counter{window: w}
		c.open()
		time.Sleep(3 * time.Second)
		c.finish()
		if c.ended != 0 || c.span != 3*time.Second || closed != 2 {
			t.Errorf("%d operations in %v, closed %d times; want none in 3s, twice", c.ended, c.span, closed)
		}
	})
}

func TestFailuresEndAMeasurement(t *testing.T) {
	broken := errors.New("broken")
	w := Window{Warmup: time.Millisecond, Duration: 10 * time.Second, Begin: func() {}, End: func() {}}
	_, err := measureCallers(t.Context(), Case{Callers: 2}, w, func(int) callerWork {
		return func(_ context.Context, it *iteration) error { return it.call(1, func() error { return broken }) }
	})
	if err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("error %v, want that of the operation", err)
	}
}

func TestCPUTimeGrows(t *testing.T) {
	before, err := ReadCPUTimes()
	if err != nil {
		t.Skip(err)
	}
	machine, err := ReadMachineTime()
	if err != nil {
		t.Fatal(err)
	}
	x := 1.0
	for began := time.Now(); ; {
		for range 1000 {
			x = math.Sqrt(x + 1)
		}
		after, err := ReadCPUTimes()
		if err != nil {
			t.Fatal(err)
		}
		now, err := ReadMachineTime()
		if err != nil {
			t.Fatal(err)
		}
		if after.Client() > before.Client() && now.Busy > machine.Busy && now.Total > machine.Total {
			return
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("CPU time does not grow: %v to %v, %+v to %+v (%v)", before.Client(), after.Client(), machine, now, x)
		}
	}
}

func TestEtcdAnswersAreParsed(t *testing.T) {
	number := func(b []byte, field protowire.Number, n uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
	}
	pair := number(appendBytes(number(appendBytes(nil, 1, []byte("k")), 2, 3), 5, []byte("v")), 3, 7)
	read := number(appendBytes(nil, 2, pair), 4, 9)
	message := appendBytes(nil, 1, number(nil, 3, 42)) // the header
	message = number(message, 2, 1)
	message = appendBytes(message, 3, appendBytes(nil, 1, read))
	var a etcdAnswer
	if err := parseTxn(&a, message); err != nil {
		t.Fatal(err)
	}
	if a.revision != 42 || !a.succeeded || a.count != 9 || len(a.pairs) != 1 {
		t.Fatalf("parsed %+v", a)
	}
	if p := a.pairs[0]; string(p.key) != "k" || string(p.value) != "v" || p.revision != 7 {
		t.Errorf("parsed %+v", p)
	}
	for _, broken := range [][]byte{message[:len(message)-1], append(message, 0x80)} {
		if err := parseTxn(&a, broken); !errors.Is(err, errMalformed) {
			t.Errorf("answer %x: error %v", broken, err)
		}
	}
}

func TestNodesIncludeTheirChildren(t *testing.T) {
	times := make(CPUTimes)
	for _, line := range []string{
		"70 (post gres) S) S 1 70 70 0 -1 4194560 1 2 3 4 100 20 3 0 20 0 1 0 5 6 7",
		"71 (backend) S 70 71 71 0 -1 4194560 1 2 3 4 1000 200 0 0 20 0 1 0 5 6 7",
		"72 (other) S 1 72 72 0 -1 4194560 1 2 3 4 50000 0 0 0 20 0 1 0 5 6 7",
	} {
		pid, parsed, err := parseProcessTime(line)
		if err != nil {
			t.Fatal(err)
		}
		times[pid] = parsed
	}
	node := &Process{cmd: &exec.Cmd{Process: &os.Process{Pid: 70}}}
	if got := times.Node(node); got != 13.23 {
		t.Errorf("the node used %v s, want 13.23", got)
	}
	if _, _, err := parseProcessTime("70 (x) S 1"); err == nil {
		t.Error("a short line is accepted")
	}
}
