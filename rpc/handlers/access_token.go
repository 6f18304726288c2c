package handlers

import (
	"context"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/rpc/wire"
)

// CreateToken makes a token of an account. Only its id and hash enter the log.
func (s AccessService) CreateToken(
	ctx context.Context, r *adminv1.CreateTokenRequest,
) (*adminv1.CreateTokenResponse, error) {
	ceiling, err := wire.ToCeiling(r.GetVerbs())
	if err != nil {
		return nil, wire.ToError(err)
	}
	life, err := wire.ToTokenLife(r.GetLifeMs(), s.longestLife())
	if err != nil {
		return nil, wire.ToError(err)
	}
	made, token, err := s.makeToken(life)
	if err != nil {
		return nil, err
	}
	write, err := s.changeBook(ctx, r.GetReason(), access.CreateToken{
		Account: r.GetAccount(), Token: token, Description: r.GetDescription(), Ceiling: ceiling,
	})
	if err != nil {
		return nil, err
	}
	record, err := s.recordOf(ctx, token.ID, write.GetIndex())
	if err != nil {
		return nil, err
	}
	return &adminv1.CreateTokenResponse{Secret: made.Reveal(), Token: record, Write: write}, nil
}

// RotateToken makes a token that replaces another one.
func (s AccessService) RotateToken(
	ctx context.Context, r *adminv1.RotateTokenRequest,
) (*adminv1.RotateTokenResponse, error) {
	old, err := s.tokenToRotate(ctx, r.GetId())
	if err != nil {
		return nil, wire.ToError(err)
	}
	overlap, err := wire.ToOverlap(r.OverlapMs)
	if err != nil {
		return nil, wire.ToError(err)
	}
	life, err := s.lifeOfNext(ctx, old, r.GetLifeMs())
	if err != nil {
		return nil, wire.ToError(err)
	}
	made, token, err := s.makeToken(life)
	if err != nil {
		return nil, err
	}
	write, err := s.changeBook(ctx, r.GetReason(), access.RotateToken{Old: old, Token: token, Overlap: overlap})
	if err != nil {
		return nil, err
	}
	record, err := s.recordOf(ctx, token.ID, write.GetIndex())
	if err != nil {
		return nil, err
	}
	return &adminv1.RotateTokenResponse{Secret: made.Reveal(), Token: record, Write: write}, nil
}

// lifeOfNext is how long the token lives that replaces another one. A caller that may not make tokens gets at most the
// life of the old one: otherwise a token that was stolen for an hour would live for as long as any.
func (s AccessService) lifeOfNext(ctx context.Context, old access.TokenID, wanted int64) (int64, error) {
	life, err := wire.ToTokenLife(wanted, s.longestLife())
	book := s.Node.Book()
	record, found := book.Token(old)
	if err != nil || !found || s.Access.RequireClusterIn(ctx, book, access.AccessManage) == nil {
		return life, err
	}
	most := record.Life()
	if wanted > most+lifeSlack {
		return 0, wire.InvalidField("life_ms", "the new token would live for %d ms, and the old one was made for %d; "+
			"only callers with %s may make tokens that live longer", wanted, most, access.AccessManage)
	}
	return min(life, most), nil
}

// lifeSlack is how much more than the life of the old token may be asked for in milliseconds, and is left out: a token
// that was asked for 90 days was made a moment later, and lives for that much less.
const lifeSlack = 60_000

// longestLife is in milliseconds, 0 if the section has none.
func (s AccessService) longestLife() int64 { return s.Node.Book().Section().TokenLife }

// tokenToRotate returns the token that a caller wants to replace: the one of the call if the id is empty. Another one
// needs access.manage, also if it belongs to the same account: its ceiling may be higher than the caller's.
func (s AccessService) tokenToRotate(ctx context.Context, id string) (access.TokenID, error) {
	own, isToken := s.Access.Caller(ctx).Token()
	if id == "" {
		if !isToken {
			return own, wire.InvalidField("id", "the call has no token of an account; name the token to rotate")
		}
		return own, nil
	}
	old, err := wire.ToTokenID("id", id)
	if err != nil || isToken && old == own {
		return old, err
	}
	return old, s.Access.RequireCluster(ctx, access.AccessManage)
}

// RevokeToken ends a token for good.
func (s AccessService) RevokeToken(
	ctx context.Context, r *adminv1.RevokeTokenRequest,
) (*adminv1.RevokeTokenResponse, error) {
	id, err := wire.ToTokenID("id", r.GetId())
	if err != nil {
		return nil, wire.ToError(err)
	}
	write, err := s.changeBook(ctx, r.GetReason(), access.RevokeToken{ID: id})
	if err != nil {
		return nil, err
	}
	return &adminv1.RevokeTokenResponse{Write: write}, nil
}
