package repeats

import (
	"fmt"
	"testing"
)

// TestLimiterIsBounded: many peers do not make it grow.
func TestLimiterIsBounded(t *testing.T) {
	var l Limiter
	for i := range 3 * maxKeys {
		if _, ok := l.Admit(fmt.Sprint("n", i)); !ok {
			t.Fatalf("the first message about n%d was left out", i)
		}
	}
	if len(l.last) > maxKeys {
		t.Errorf("it remembers %d messages", len(l.last))
	}
}
