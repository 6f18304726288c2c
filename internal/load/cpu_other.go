//go:build !unix

package load

import "time"

// processCPU cannot be read on this system.
func processCPU() time.Duration { return 0 }
