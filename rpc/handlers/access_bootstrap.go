package handlers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/rpc/wire"
)

// RecoveryOffer is a recovery that was prepared on the machine of a server.
type RecoveryOffer struct {
	// Secret is the SHA-256 of its secret.
	Secret [sha256.Size]byte
	// Recoveries is the count of the access book for which it was made.
	Recoveries uint64
}

// bootstrapAccount is the account that Bootstrap makes unless the caller names another, bootstrapLife how long its
// token lives: long enough to make accounts and bindings.
const (
	bootstrapAccount = "admin"
	bootstrapLife    = access.DefaultOverlap
)

// Bootstrap makes an administrator for a caller who shows the bootstrap secret, or the secret of a recovery that was
// prepared on the machine of this server, which leads. The ledger decides whether the secret is spent.
func (s AccessService) Bootstrap(
	ctx context.Context, r *adminv1.BootstrapRequest,
) (*adminv1.BootstrapResponse, error) {
	command, err := s.bootstrapCommand(sha256.Sum256([]byte(r.GetSecret())))
	if err != nil {
		return nil, err
	}
	life := bootstrapLife
	if longest := s.longestLife(); longest > 0 {
		life = min(life, longest)
	}
	made, token, err := s.makeToken(life)
	if err != nil {
		return nil, err
	}
	command.Guard = s.GuardsAtBootstrap && s.Node.Book().Mode() == access.Open
	command.Account, command.Token = cmp.Or(r.GetAccount(), bootstrapAccount), token
	write, err := s.changeBook(ctx, "bootstrap", command)
	if err != nil {
		return nil, err
	}
	record, err := s.recordOf(ctx, token.ID, write.GetIndex())
	if err != nil {
		return nil, err
	}
	return &adminv1.BootstrapResponse{Secret: made.Reveal(), Token: record, Write: write}, nil
}

// bootstrapCommand returns the command that a secret allows, without account and token. A secret of a recovery is
// compared on the leader alone: no node vouches for another one, so that the key of one node is not worth an
// administrator.
func (s AccessService) bootstrapCommand(shown [sha256.Size]byte) (access.Bootstrap, error) {
	none := [sha256.Size]byte{}
	if s.BootstrapSecret != none && subtle.ConstantTimeCompare(shown[:], s.BootstrapSecret[:]) == 1 {
		return access.Bootstrap{Secret: shown}, nil
	}
	offer, offered, err := s.recoveryOffer()
	switch {
	case err != nil:
		return access.Bootstrap{}, err
	case offered && subtle.ConstantTimeCompare(shown[:], offer.Secret[:]) == 1:
		return access.Bootstrap{Secret: shown, IsRecovery: true, Recoveries: offer.Recoveries, Member: s.ID}, nil
	case !offered && s.BootstrapSecret == none:
		return access.Bootstrap{}, bootstrapConflict("the leader, " + s.ID + ", has no bootstrap secret; set " +
			"bootstrap-secret-file on all servers, or run \"quorate access recover\" on the machine of " + s.ID)
	}
	return access.Bootstrap{}, wire.UnauthenticatedError("the secret is neither the bootstrap secret of this cluster " +
		"nor that of a recovery on the machine of the leader, " + s.ID + ", where \"quorate access recover\" prepares one")
}

// recoveryOffer reads the recovery that was prepared on this machine. What is wrong with it stands in the log.
func (s AccessService) recoveryOffer() (RecoveryOffer, bool, error) {
	if s.Recovery == nil {
		return RecoveryOffer{}, false, nil
	}
	offer, offered, err := s.Recovery()
	if err != nil {
		s.Log.Warn("a recovery of access is not accepted", "error", err)
		return RecoveryOffer{}, false, bootstrapConflict("the recovery on the machine of the leader, " + s.ID +
			", is not accepted; the log of that server says why")
	}
	return offer, offered, nil
}

// bootstrapConflict refuses a bootstrap for which the servers are not prepared.
func bootstrapConflict(text string) error {
	return wire.NewProblem(connect.CodeFailedPrecondition, text,
		&quoratev1.Problem{Reason: access.Conflict.String(), NotApplied: true})
}
