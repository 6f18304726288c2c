package cluster

import (
	"context"
	"sync/atomic"
)

// service covers the time from the start of a node until it is told to stop or detects a fault in itself.
type service struct {
	self string
	// ctx ends when the node stops serving; its tasks run under it.
	ctx      context.Context //nolint:containedctx // it ends with the node
	cancel   context.CancelFunc
	fatal    atomic.Pointer[error]
	stopping atomic.Bool
}

func newService(self string) *service {
	s := &service{self: self}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

func (s *service) fault() error {
	if err := s.fatal.Load(); err != nil {
		return *err
	}
	return nil
}

func (s *service) check() error {
	if err := s.fault(); err != nil {
		return newError(Halted, true, err, "node %s has stopped serving", s.self)
	}
	if s.stopping.Load() || s.ctx.Err() != nil {
		return newError(ShuttingDown, true, nil, "node %s is shutting down; ask another one", s.self)
	}
	return nil
}
