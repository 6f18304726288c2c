//go:build !linux

package client

import "time"

// suspendedTime is always zero: these systems do not tell it.
func suspendedTime() time.Duration { return 0 }
