package client

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestClocksOfTheSystem: one of the two clocks is the time since the machine was started, which is in /proc/uptime too.
func TestClocksOfTheSystem(t *testing.T) {
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		t.Skip(err)
	}
	seconds, _, _ := strings.Cut(string(text), " ")
	up, err := strconv.ParseFloat(seconds, 64)
	all, known := readClock(clockBoottime)
	awake, alsoKnown := readClock(clockMonotonic)
	if err != nil || !known || !alsoKnown {
		t.Fatal(err, known, alsoKnown)
	}
	if later := all - time.Duration(up*float64(time.Second)); later < -time.Second || later > time.Minute {
		t.Errorf("the machine has been up for %s s, and its clock shows %v", seconds, all)
	}
	if awake > all+time.Second || suspendedTime() < 0 || suspendedTime() > all {
		t.Errorf("awake for %v of %v, suspended for %v", awake, all, suspendedTime())
	}
}
