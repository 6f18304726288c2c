package handlers

import (
	"context"
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/wire"
)

// IdentityService tells callers who they are.
type IdentityService struct {
	Service
}

// WhoAmI shows the caller as the cluster sees it.
func (s IdentityService) WhoAmI(ctx context.Context, r *quoratev1.WhoAmIRequest) (*quoratev1.WhoAmIResponse, error) {
	caller, wall := s.Access.Caller(ctx), s.Access.Now().UnixMilli()
	answer := &quoratev1.WhoAmIResponse{
		User: caller.User, Kind: caller.Kind.String(), Groups: caller.Groups,
		Namespace: namespaceOf(ctx),
	}
	if ends := s.Access.CredentialEnds(ctx); !ends.IsZero() {
		answer.EndsAt = timestamppb.New(ends)
	}
	read, err := s.readState(ctx, r.GetRead(), func(v ledger.Reader) error {
		book := v.Book()
		id, err := book.Identify(caller, wall)
		if err != nil {
			return err
		}
		if tokenID, isToken := caller.Token(); isToken {
			token, _ := book.Token(tokenID) // it exists, or the caller would not have been identified
			account, _ := book.Account(token.Account)
			answer.Groups, answer.EndsAt = slices.Clone(account.Groups), wire.FromToken(token).GetEndsAt()
		}
		answer.Mode = wire.FromAccessMode(book.Mode())
		answer.ClusterVerbs = access.VerbsAt(id, wall, access.Path{book.Cluster()}).Names()
		return nil
	})
	if err != nil {
		return nil, err
	}
	answer.Read = read
	return answer, nil
}

// CanI says whether the caller has verbs at places.
func (s IdentityService) CanI(ctx context.Context, r *quoratev1.CanIRequest) (*quoratev1.CanIResponse, error) {
	verbs := make([]access.Verb, len(r.GetQuestions()))
	for i, q := range r.GetQuestions() {
		var err error
		if verbs[i], err = wire.ToVerb(wire.ElementOf("questions", i)+".verb", q.GetVerb()); err != nil {
			return nil, wire.ToError(err)
		}
	}
	caller, wall := s.Access.Caller(ctx), s.Access.Now().UnixMilli()
	answer := &quoratev1.CanIResponse{Allowed: make([]bool, len(verbs))}
	read, err := s.readState(ctx, r.GetRead(), func(v ledger.Reader) error {
		id, err := v.Book().Identify(caller, wall)
		if err != nil {
			return err
		}
		for i, q := range r.GetQuestions() {
			path, exists := v.AccessPath(q.GetTree(), q.GetNode())
			answer.Allowed[i] = exists && access.Allows(id, verbs[i], wall, path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	answer.Read = read
	return answer, nil
}
