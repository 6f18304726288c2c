//go:build !linux

package client

import "time"

// suspendedTime is not known on these systems.
func suspendedTime() time.Duration { return 0 }
