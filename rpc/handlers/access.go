package handlers

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/authn"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/wire"
)

// AccessService changes and shows who may do what. Its writes run on the leader, as those of all services.
type AccessService struct {
	Service

	// BootstrapSecret is the SHA-256 of the bootstrap secret; zero if this server has none.
	BootstrapSecret [sha256.Size]byte
	// Recovery returns the recovery that was prepared on the machine of this server, and false if there is none; nil if
	// there never is.
	Recovery func() (RecoveryOffer, bool, error)
	// GuardsAtBootstrap is true if Bootstrap guards an open cluster.
	GuardsAtBootstrap bool
	// Log takes why a recovery is not accepted, which callers are not told.
	Log hclog.Logger
	// Random is the source of secrets: crypto/rand.Reader, except in tests.
	Random io.Reader
}

// changeBook returns the log index that reflects the change.
func (s AccessService) changeBook(
	ctx context.Context, reason string, change access.Command,
) (*quoratev1.WriteInfo, error) {
	outcome, index, err := s.proposeOne(ctx, quota.ChangeAccess{Reason: reason, Change: change})
	if err != nil {
		return nil, err
	}
	if outcome.Refused != nil {
		return nil, wire.AccessRefusalError(outcome.Refused)
	}
	return fromWrite(outcome, index), nil
}

// makeToken draws a token that lives so many milliseconds.
func (s AccessService) makeToken(life int64) (authn.Token, access.NewToken, error) {
	made, err := authn.NewToken(s.Random)
	if err != nil {
		return authn.Token{}, access.NewToken{}, wire.ToError(fmt.Errorf("drawing a token: %w", err))
	}
	return made, access.NewToken{
		ID: access.TokenID(made.ID()), Hash: made.Hash(), Ends: wire.EndOfLife(s.Access.Now(), life),
	}, nil
}

func (s AccessService) recordOf(ctx context.Context, id access.TokenID, index uint64) (*adminv1.Token, error) {
	var record access.Token
	found := false
	// This node has proposed the change, so its own state at the index is enough. A linearizable read would fail if the
	// leader changed now, and the secret would be lost.
	// The caller is not asked again either: its own token may have ended with the change.
	own := cluster.ReadOptions{Stale: true, MinIndex: index}
	_, err := lendState(ctx, s.Service, own, s.Node.Read, func(v ledger.Reader) error {
		record, found = v.Book().Token(id)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, wire.ToError(connect.NewError(connect.CodeAborted,
			errors.New("the token was made, and its account was deleted since")))
	}
	return wire.FromToken(record), nil
}

// CreateAccount adds an account.
func (s AccessService) CreateAccount(
	ctx context.Context, r *adminv1.CreateAccountRequest,
) (*adminv1.CreateAccountResponse, error) {
	write, err := s.changeBook(ctx, r.GetReason(), access.CreateAccount{Account: wire.ToAccount(r.GetAccount())})
	if err != nil {
		return nil, err
	}
	return &adminv1.CreateAccountResponse{Write: write}, nil
}

// UpdateAccount changes an account.
func (s AccessService) UpdateAccount(
	ctx context.Context, r *adminv1.UpdateAccountRequest,
) (*adminv1.UpdateAccountResponse, error) {
	write, err := s.changeBook(ctx, r.GetReason(), wire.ToUpdateAccount(r))
	if err != nil {
		return nil, err
	}
	return &adminv1.UpdateAccountResponse{Write: write}, nil
}

// DeleteAccount removes an account with its tokens.
func (s AccessService) DeleteAccount(
	ctx context.Context, r *adminv1.DeleteAccountRequest,
) (*adminv1.DeleteAccountResponse, error) {
	write, err := s.changeBook(ctx, r.GetReason(), access.DeleteAccount{Name: r.GetName()})
	if err != nil {
		return nil, err
	}
	return &adminv1.DeleteAccountResponse{Write: write}, nil
}

// RefuseCredential adds a refusal. Its reason is kept with it.
func (s AccessService) RefuseCredential(
	ctx context.Context, r *adminv1.RefuseCredentialRequest,
) (*adminv1.RefuseCredentialResponse, error) {
	refused, err := wire.ToRefused("refused", r.GetRefused(), s.Access.Now())
	if err != nil {
		return nil, wire.ToError(err)
	}
	write, err := s.changeBook(ctx, refused.Reason, access.Refuse{Refused: refused})
	if err != nil {
		return nil, err
	}
	return &adminv1.RefuseCredentialResponse{Write: write}, nil
}

// AllowCredential removes a refusal.
func (s AccessService) AllowCredential(
	ctx context.Context, r *adminv1.AllowCredentialRequest,
) (*adminv1.AllowCredentialResponse, error) {
	key, err := wire.ToRefusedKey("", r.GetKind(), r.GetIssuer(), r.GetName())
	if err != nil {
		return nil, wire.ToError(err)
	}
	write, err := s.changeBook(ctx, r.GetReason(), access.Unrefuse{Key: key})
	if err != nil {
		return nil, err
	}
	return &adminv1.AllowCredentialResponse{Write: write}, nil
}

// SetAccessMode sets the mode. The mode before is the one that this leader saw when the call came.
func (s AccessService) SetAccessMode(
	ctx context.Context, r *adminv1.SetAccessModeRequest,
) (*adminv1.SetAccessModeResponse, error) {
	mode, err := wire.ToAccessMode("mode", r.GetMode())
	if err != nil {
		return nil, wire.ToError(err)
	}
	before := s.Node.Book().Mode()
	write, err := s.changeBook(ctx, r.GetReason(), access.SetMode{Mode: mode})
	if err != nil {
		return nil, err
	}
	return &adminv1.SetAccessModeResponse{Before: wire.FromAccessMode(before), Write: write}, nil
}
