package rpc

import (
	"context"
	"time"

	"github.com/quorate/quorate/rpc/authorize"
	"github.com/quorate/quorate/rpc/identify"
	"github.com/quorate/quorate/rpc/observe"
)

func (s *Server) newAuthorizer(c Config) (*authorize.Authorizer, error) {
	return authorize.New(authorize.Config{
		Rules: s.procedures, Books: c.Node, CallerOf: identify.CallerOf, CredentialEnds: identify.CredentialEnds,
		Now: time.Now, Registerer: c.Registerer, Closed: c.Closed, WasGuarded: c.WasGuarded,
		WriteError: s.admission.RefuseCall,
		LogWouldRefuse: func(ctx context.Context, user, verb, place string) {
			s.observer.Refusals.LogWouldRefuse(observe.CallOf(ctx), user, verb, place)
		},
	})
}
