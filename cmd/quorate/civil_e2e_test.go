package main_test

import (
	"regexp"
	"testing"
	"time"
)

// TestCivilTimeOverARealServer: a new cluster shows civil time within seconds.
func TestCivilTimeOverARealServer(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	ctx, shown := withTimeout(t, patience), regexp.MustCompile(`(?m)^civil time +(\S+)$`)
	for {
		end := runCommand(t, "status", "--server", f.baseURL())
		found := shown.FindStringSubmatch(end.stdout)
		if found == nil || ctx.Err() != nil {
			t.Fatalf("no civil time after %v:\n%s%s", patience, end.stdout, end.stderr)
		}
		if at, err := time.Parse(time.RFC3339, found[1]); err == nil {
			if age := time.Since(at); age < -2*time.Second || age > patience {
				t.Fatalf("civil time is %v old", age)
			}
			return
		}
		pauseFor(ctx, 100*time.Millisecond)
	}
}
