package wire

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	validatepb "buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// refusalCodes maps the refusals of the ledger to codes. Denials are not in it: see DenialError.
var refusalCodes = map[quota.Kind]connect.Code{
	quota.Invalid:            connect.CodeInvalidArgument,
	quota.NotFound:           connect.CodeNotFound,
	quota.IDTaken:            connect.CodeAlreadyExists,
	quota.Ended:              connect.CodeFailedPrecondition,
	quota.RevisionMismatch:   connect.CodeAborted,
	quota.PolicyBreach:       connect.CodeFailedPrecondition,
	quota.InUse:              connect.CodeFailedPrecondition,
	quota.Full:               connect.CodeResourceExhausted,
	quota.Forbidden:          connect.CodePermissionDenied,
	quota.FenceMismatch:      connect.CodeAborted,
	quota.GenerationMismatch: connect.CodeAborted,
	quota.Unauthenticated:    connect.CodeUnauthenticated,
}

// nodeErrorCodes maps the errors of a node to codes.
var nodeErrorCodes = map[cluster.Reason]connect.Code{
	cluster.NoLeader:       connect.CodeUnavailable,
	cluster.NotLeader:      connect.CodeUnavailable,
	cluster.LeadershipLost: connect.CodeUnavailable,
	cluster.Halted:         connect.CodeUnavailable,
	cluster.ShuttingDown:   connect.CodeUnavailable,
	cluster.Overloaded:     connect.CodeUnavailable,
	cluster.Deadline:       connect.CodeDeadlineExceeded,
	cluster.TooLarge:       connect.CodeInvalidArgument,
	cluster.NotUpgraded:    connect.CodeUnavailable,
	cluster.Forgotten:      connect.CodeOutOfRange,
	cluster.Busy:           connect.CodeFailedPrecondition,
	cluster.Damaged:        connect.CodeInvalidArgument,
	cluster.DiskFull:       connect.CodeResourceExhausted,
	cluster.Unsafe:         connect.CodeFailedPrecondition,
	cluster.UnknownMember:  connect.CodeNotFound,
}

// retryAfter returns the delay before a retry, for errors that immediate retries would make worse.
var retryAfter = map[cluster.Reason]time.Duration{
	cluster.Overloaded: time.Second,
	cluster.DiskFull:   30 * time.Second,
}

// AskAnotherHeader marks answers of a node that is not the leader. The call was not executed, so the relaying node may
// send it to another node.
const AskAnotherHeader = "Quorate-Ask-Another"

// ReasonInternal is the reason of errors that only a bug can cause.
const ReasonInternal = "INTERNAL"

// NoLeaderText is the advice to an operator of a cluster without a leader.
const NoLeaderText = "no leader with a majority behind it can be found now, so the cluster takes no writes and " +
	"serves no linearizable reads; " +
	"check with `quorate status` that a majority of the members is up and that they reach each other, " +
	"or read with consistency stale"

// NewProblem makes an error with the typed detail that every error other than a denial carries.
func NewProblem(code connect.Code, text string, detail *quoratev1.Problem) *connect.Error {
	return WithDetail(connect.NewError(code, errors.New(text)), detail)
}

// WithDetail adds a typed detail to an error.
func WithDetail(err *connect.Error, message proto.Message) *connect.Error {
	detail, failed := connect.NewErrorDetail(message)
	if failed != nil {
		return connect.NewError(connect.CodeInternal,
			fmt.Errorf("%s; and its detail cannot be encoded: %w", err.Message(), failed))
	}
	err.AddDetail(detail)
	return err
}

// InvalidField refuses a request that is wrong in every state of the ledger.
func InvalidField(field, format string, args ...any) error {
	return &quota.Error{Kind: quota.Invalid, Field: field, Text: fmt.Sprintf(format, args...)}
}

// DenialError returns the error for a denied request, with the violated limits and the index of the state it was
// decided on.
func DenialError(d quota.Decision, index uint64) *connect.Error {
	detail := denialDetail(&d, index)
	return WithDetail(connect.NewError(connect.CodeResourceExhausted, errors.New(detail.GetExplanation())), detail)
}

// DenialFailure is a DenialError as an element of a batch. It encodes nothing on the way, because a batch may have
// many.
func DenialFailure(d *quota.Decision, index uint64) *quoratev1.Failure {
	detail := denialDetail(d, index)
	return &quoratev1.Failure{
		Code: connect.CodeResourceExhausted.String(), Message: ShortText(detail.GetExplanation()), Decision: detail,
	}
}

func denialDetail(d *quota.Decision, index uint64) *quoratev1.Decision {
	detail := FromDecisionParts(d, nil)
	detail.Index = &index
	return detail
}

// RefusalError returns the error for a refusal of the ledger other than a denial.
func RefusalError(e *quota.Error) *connect.Error {
	code, known := refusalCodes[e.Kind]
	if !known {
		code = connect.CodeInternal
	}
	detail := &quoratev1.Problem{Reason: e.Kind.String(), Field: shortenText(e.Field, maxErrorField), NotApplied: true}
	if e.Kind == quota.Forbidden && e.Verb != 0 {
		detail.MissingVerb = e.Verb.String()
		detail.MissingTree, detail.MissingNode, _ = strings.Cut(e.Place, ":")
	}
	for _, b := range e.Breaches {
		detail.Breaches = append(detail.Breaches,
			&quoratev1.Breach{Tree: b.Tree, Node: b.Node, Policy: b.Policy, Resource: b.Resource, Text: b.Text})
	}
	return NewProblem(code, e.Error(), detail)
}

// NodeError returns the API error for an error of the node.
func NodeError(e *cluster.Error) *connect.Error {
	code, known := nodeErrorCodes[e.Reason]
	if !known {
		code = connect.CodeInternal
	}
	err := NewProblem(code, e.Error(), &quoratev1.Problem{Reason: e.Reason.String(), NotApplied: e.NotApplied})
	if e.NotApplied && (e.Reason == cluster.NotLeader || e.Reason == cluster.ShuttingDown) {
		err.Meta().Set(AskAnotherHeader, e.Reason.String())
	}
	if after, passes := retryAfter[e.Reason]; passes {
		return WithRetryAfter(err, after)
	}
	return err
}

// NoLeaderError is the error of a call that found no leader in time; nothing was done.
func NoLeaderError() *cluster.Error {
	return &cluster.Error{Reason: cluster.NoLeader, NotApplied: true, Text: NoLeaderText}
}

// ToError turns any error into an answer.
func ToError(err error) *connect.Error {
	var refused *quota.Error
	var forbidden *access.Error
	var failed *cluster.Error
	var answer *connect.Error
	switch {
	case errors.As(err, &forbidden):
		return AccessError(forbidden)
	case errors.As(err, &refused):
		return RefusalError(refused)
	case errors.As(err, &failed):
		return NodeError(failed)
	case errors.As(err, &answer):
		return answer
	case errors.Is(err, context.DeadlineExceeded):
		return NodeError(
			&cluster.Error{
				Reason: cluster.Deadline,
				Text:   "the deadline of this call passed before the answer was there",
			})
	case errors.Is(err, context.Canceled):
		return connect.NewError(connect.CodeCanceled, err)
	}
	return NewProblem(connect.CodeInternal, err.Error(), &quoratev1.Problem{Reason: ReasonInternal})
}

// ToFailure is an error as an element of a batch.
func ToFailure(err *connect.Error) *quoratev1.Failure {
	failure := &quoratev1.Failure{Code: err.Code().String(), Message: ShortText(err.Message())}
	for _, detail := range err.Details() {
		value, broken := detail.Value()
		if broken != nil {
			continue
		}
		switch value := value.(type) {
		case *quoratev1.Decision:
			failure.Decision = value
		case *quoratev1.Problem:
			failure.Problem = value
		}
	}
	return failure
}

// InvalidRequestError is what the interceptor would have answered to the request alone.
func InvalidRequestError(err error) *connect.Error {
	answer := connect.NewError(connect.CodeInvalidArgument, err)
	var broken *protovalidate.ValidationError
	if errors.As(err, &broken) {
		answer = WithDetail(answer, SchemaProblem(broken.ToProto()))
	}
	return answer
}

// SchemaProblem is the detail of a request that breaks rules of its schema: it names the first field.
func SchemaProblem(v *validatepb.Violations) *quoratev1.Problem {
	detail := &quoratev1.Problem{Reason: quota.Invalid.String(), NotApplied: true}
	if len(v.GetViolations()) > 0 {
		detail.Field = protovalidate.FieldPathString(v.GetViolations()[0].GetField())
	}
	return detail
}

// WithRetryAfter adds the retry delay as RetryInfo of gRPC's error model and as the HTTP header Retry-After.
func WithRetryAfter(err *connect.Error, after time.Duration) *connect.Error {
	err.Meta().Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
	return WithDetail(err, &errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
}

// RelayedByHeader names the node that relayed a call. A call that has it is never relayed again.
const RelayedByHeader = "Quorate-Relayed-By"
