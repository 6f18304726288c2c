package handlers

import (
	"context"
	"errors"

	"google.golang.org/protobuf/types/known/timestamppb"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/wire"
)

// answerBuilder makes the answers of one call from the outcomes of its commands. Answers about equal claims share the
// messages of these: callers of batches often ask for the same many times, and answers are only encoded, never changed.
// The zero value is ready for use, by one goroutine.
type answerBuilder struct {
	key        ledger.ClaimsKey
	claims     []quota.ClaimInfo
	held       []*quoratev1.HeldClaim
	placements []*quoratev1.Placement
	// granted is the decision of an ordinary grant of the claims.
	granted *quoratev1.Decision
	// wall is the time of wallMs.
	wall   *timestamppb.Timestamp
	wallMs int64
	// written is the last write: all commands of a log entry have the same.
	written *quoratev1.WriteInfo
}

// setClaims makes the messages of a record's claims, unless those of the last record fit.
func (b *answerBuilder) setClaims(a *ledger.Allocation) {
	key, comparable := a.ClaimsKey()
	if comparable && key == b.key {
		return
	}
	b.useClaims(a.Info().Claims)
	b.key = key // the zero key, if it is not comparable, equals no other
}

func (b *answerBuilder) useClaims(claims []quota.ClaimInfo) {
	b.key, b.claims, b.granted = ledger.ClaimsKey{}, claims, nil
	b.held, b.placements = wire.FromClaims(claims), wire.ToPlacements(claims)
}

// allocation reuses the claims that were set last if info has the same.
func (b *answerBuilder) allocation(info quota.AllocationInfo) *quoratev1.Allocation {
	return wire.FromAllocationParts(info, b.held, b.timestamp)
}

// timestamp caches the last result: most answers of a batch have the same.
func (b *answerBuilder) timestamp(ms int64) *timestamppb.Timestamp {
	if b.wall == nil || b.wallMs != ms {
		b.wall, b.wallMs = wire.FromWall(ms), ms
	}
	return b.wall
}

// write caches the last result too.
func (b *answerBuilder) write(o ledger.Outcome, index uint64) *quoratev1.WriteInfo {
	if w := b.written; w == nil || w.GetIndex() != index || w.GetLedgerTimeMs() != int64(o.Now) ||
		w.GetRepetition() != o.Repeated {
		b.written = fromWrite(o, index)
	}
	return b.written
}

// decision uses the places of the claims that were set last.
func (b *answerBuilder) decision(d *quota.Decision) *quoratev1.Decision {
	ordinary := d.Granted && len(d.Preempted) == 0 && d.Remedy == nil && len(d.Violations) == 0
	if ordinary && b.granted != nil {
		return b.granted
	}
	made := wire.FromDecisionParts(d, b.placements)
	if ordinary {
		b.granted = made
	}
	return made
}

// allocated returns the grant or the place in the queue, or the error of a denial or failure.
func (b *answerBuilder) allocated(
	ctx context.Context, s AllocationService, o ledger.Outcome, index uint64,
) (*quoratev1.AllocateResponse, error) {
	switch {
	case o.Refused != nil:
		return nil, wire.RefusalError(o.Refused)
	case o.Decision == nil:
		return nil, wire.ToError(errors.New("the ledger made no decision; this is a bug of the server"))
	case isDenied(o):
		return nil, wire.DenialError(*o.Decision, index)
	}
	answer := &quoratev1.AllocateResponse{Write: b.write(o, index)}
	switch {
	case o.Allocation == nil:
		b.useClaims(o.Decision.Placements)
	case o.Allocation.State() == quota.Waiting:
		info := s.withQueuePlace(ctx, o.Allocation)
		b.useClaims(info.Claims)
		answer.Allocation = b.allocation(info)
	default:
		b.setClaims(o.Allocation)
		answer.Allocation = b.allocation(o.Allocation.InfoWithClaims(b.claims))
	}
	answer.Decision = b.decision(o.Decision)
	return answer, nil
}

// fromWrite says where the log has the command with this outcome.
func fromWrite(o ledger.Outcome, index uint64) *quoratev1.WriteInfo {
	return &quoratev1.WriteInfo{Index: index, LedgerTimeMs: int64(o.Now), Repetition: o.Repeated}
}

func isDenied(o ledger.Outcome) bool {
	return o.Refused == nil && o.Decision != nil && !o.Decision.Granted && !o.Decision.Waiting
}

// released returns the record of what has ended, or the error of a refusal.
func (b *answerBuilder) released(o ledger.Outcome, index uint64) (*quoratev1.ReleaseResponse, error) {
	if o.Refused != nil {
		return nil, wire.RefusalError(o.Refused)
	}
	b.setClaims(o.Allocation)
	return &quoratev1.ReleaseResponse{
		Allocation: b.allocation(o.Allocation.InfoWithClaims(b.claims)), Write: b.write(o, index),
	}, nil
}
