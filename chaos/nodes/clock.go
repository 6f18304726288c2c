package nodes

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/quorate/quorate/chaos/overlay"
)

// clockVariable names the file from which a binary with a turnable clock reads its offset.
const clockVariable = "CHAOS_CLOCK"

// clockBytes is the size of that file: seconds, as a signed number in native byte order.
const clockBytes = 8

// Clock sets the wall clock of one node.
type Clock struct{ path string }

func newClock(path string) (*Clock, error) {
	c := &Clock{path}
	return c, c.SetOffset(0)
}

// SetOffset sets the wall clock off by whole seconds until the next call. The monotonic clock goes on unchanged, as
// on a machine whose administrator sets the time.
func (c *Clock) SetOffset(offset time.Duration) error {
	file, err := os.OpenFile(c.path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("turn a clock: %w", err)
	}
	var value [clockBytes]byte
	binary.NativeEndian.PutUint64(value[:], uint64(int64(offset/time.Second)))
	if _, err := file.WriteAt(value[:], 0); err != nil {
		_ = file.Close() // the first error is more useful
		return fmt.Errorf("turn a clock: %w", err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("turn a clock: %w", err)
	}
	return nil
}

// clockSource is added to package time of the binary. The file is mapped into memory, so that reading it costs
// nothing.
const clockSource = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

var chaosNoDeviation int64
var chaosDeviation = chaosMap()

func chaosMap() *int64 {
	path, set := syscall.Getenv("` + clockVariable + `")
	if !set {
		return &chaosNoDeviation
	}
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		panic("` + clockVariable + `: " + err.Error())
	}
	shared, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic("` + clockVariable + `: " + err.Error())
	}
	syscall.Close(fd)
	return (*int64)(unsafe.Pointer(&shared[0]))
}

func chaosDeviates() int64 { return atomic.LoadInt64(chaosDeviation) }
`

// timeSource is the file of the standard library that reads the clock. The offset is added after nowLine.
const (
	timeSource = "src/time/time.go"
	nowFunc    = "func Now() Time {\n"
	nowLine    = "\tsec, nsec, mono := runtimeNow()\n"
)

// AddTurnableClock adds the sources of a turnable wall clock to an overlay.
func AddTurnableClock(o *overlay.Overlay) error {
	out, err := exec.Command("go", "env", "GOROOT").Output() //nolint:noctx // it starts no other process
	if err != nil {
		return fmt.Errorf("find the standard library: %w", err)
	}
	original := filepath.Join(strings.TrimSpace(string(out)), timeSource)
	source, err := os.ReadFile(original)
	if err != nil {
		return fmt.Errorf("read the standard library: %w", err)
	}
	patched := strings.Replace(string(source), nowFunc+nowLine, nowFunc+nowLine+"\tsec += chaosDeviates()\n", 1)
	if patched == string(source) {
		return fmt.Errorf("time.Now of this Go is not as expected: look at %s and at nowLine", timeSource)
	}
	return errors.Join(o.Replace(original, patched), o.Replace(filepath.Join(filepath.Dir(original), "chaos.go"),
		clockSource))
}
