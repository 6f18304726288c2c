package client

import "time"

// WithSuspensions replaces what the system tells about the time in which the machine was suspended.
func WithSuspensions(suspended func() time.Duration) Option {
	return func(s *settings) { s.clock = leaseTime{suspended} }
}
