package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
)

type joinedMethod struct {
	// isJoinable reports whether a request means the same in a batch.
	isJoinable func(request any) bool
	// encode returns a request as an element of the batch request.
	encode func(request any) ([]byte, error)
	// send makes the batch call. Without an error it returns an outcome for each call.
	send func(ctx context.Context, batch *joinedBatch) ([]callOutcome, error)
}

func newJoiner(
	slots int, http connect.HTTPClient, tokens *tokens, options ...connect.ClientOption,
) *joiner {
	j := &joiner{queues: map[string]*callQueue{}}
	for procedure, method := range map[string]joinedMethod{
		quoratev1connect.AllocationServiceAllocateProcedure: joinedAllocate(http, options),
		quoratev1connect.AllocationServiceReleaseProcedure:  joinedRelease(http, options),
		quoratev1connect.AllocationServiceRenewProcedure:    joinedRenew(http, options),
	} {
		j.queues[procedure] = &callQueue{method: method, slots: slots, tokens: tokens}
	}
	return j
}

// joinedAllocate joins requests that are decided at once. A call with poll_ms waits for its grant, which a batch does
// not.
func joinedAllocate(http connect.HTTPClient, options []connect.ClientOption) joinedMethod {
	batches := connect.NewClient[quoratev1.BatchAllocateRequest, quoratev1.BatchAllocateResponse](
		http, anyServer+quoratev1connect.AllocationServiceBatchAllocateProcedure, options...)
	return joinedMethod{
		isJoinable: func(request any) bool {
			r, ok := request.(*quoratev1.AllocateRequest)
			return ok && r.GetPollMs() == 0
		},
		encode: encodeElement,
		send: func(ctx context.Context, batch *joinedBatch) ([]callOutcome, error) {
			answer, err := sendElements(ctx, batches, batch)
			return outcomesOf(batch, answer.GetOutcomes(), err,
				func(o *quoratev1.AllocateOutcome) connect.AnyResponse { return responseOf(o.GetGranted()) })
		},
	}
}

func joinedRelease(http connect.HTTPClient, options []connect.ClientOption) joinedMethod {
	batches := connect.NewClient[quoratev1.BatchReleaseRequest, quoratev1.BatchReleaseResponse](
		http, anyServer+quoratev1connect.AllocationServiceBatchReleaseProcedure, options...)
	return joinedMethod{
		isJoinable: func(request any) bool { _, ok := request.(*quoratev1.ReleaseRequest); return ok },
		encode:     encodeElement,
		send: func(ctx context.Context, batch *joinedBatch) ([]callOutcome, error) {
			answer, err := sendElements(ctx, batches, batch)
			return outcomesOf(batch, answer.GetOutcomes(), err,
				func(o *quoratev1.ReleaseOutcome) connect.AnyResponse { return responseOf(o.GetReleased()) })
		},
	}
}

func joinedRenew(http connect.HTTPClient, options []connect.ClientOption) joinedMethod {
	batches := connect.NewClient[quoratev1.BatchRenewRequest, quoratev1.BatchRenewResponse](
		http, anyServer+quoratev1connect.AllocationServiceBatchRenewProcedure, options...)
	return joinedMethod{
		isJoinable: func(request any) bool { _, ok := request.(*quoratev1.RenewRequest); return ok },
		encode:     encodeElement,
		send: func(ctx context.Context, batch *joinedBatch) ([]callOutcome, error) {
			answer, err := sendElements(ctx, batches, batch)
			return outcomesOf(batch, answer.GetOutcomes(), err,
				func(o *quoratev1.RenewOutcome) connect.AnyResponse { return responseOf(o.GetRenewed()) })
		},
	}
}

// encodeElement encodes a message as an element of field 1, which is the list in every batch request.
func encodeElement(request any) ([]byte, error) {
	message, ok := request.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is not a message", request)
	}
	size := proto.Size(message)
	element := make([]byte, 0, size+protowire.SizeTag(1)+protowire.SizeVarint(uint64(size)))
	element = protowire.AppendVarint(protowire.AppendTag(element, 1, protowire.BytesType), uint64(size))
	return proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(element, message)
}

// sendElements makes a batch call. The elements are encoded already; in the message they are unknown fields, which an
// encoder copies as they are, so that the batch costs one copy and no second encoding in a single goroutine.
func sendElements[Req, Res any](
	ctx context.Context, to *connect.Client[Req, Res], batch *joinedBatch,
) (*Res, error) {
	var elements []byte
	for _, c := range batch.calls {
		elements = append(elements, c.encoded...)
	}
	message := new(Req)
	if batch, ok := any(message).(proto.Message); ok {
		batch.ProtoReflect().SetUnknown(elements)
	}
	request := connect.NewRequest(message)
	maps.Copy(request.Header(), batch.calls[0].header)
	response, err := to.CallUnary(ctx, request)
	if err != nil {
		return nil, err
	}
	return response.Msg, nil
}

type batchOutcome interface{ GetFailure() *quoratev1.Failure }

// outcomesOf returns what each caller gets. An answer with another number of outcomes than calls answers none of them.
func outcomesOf[O batchOutcome](
	batch *joinedBatch, outcomes []O, err error, done func(O) connect.AnyResponse,
) ([]callOutcome, error) {
	if err != nil {
		return nil, err
	}
	if len(outcomes) != len(batch.calls) {
		return nil, connect.NewError(connect.CodeInternal,
			fmt.Errorf("%d calls were sent together, and %d outcomes came back", len(batch.calls), len(outcomes)))
	}
	all := make([]callOutcome, len(outcomes))
	for i, outcome := range outcomes {
		if failure := outcome.GetFailure(); failure != nil {
			all[i].err = FailureError(failure)
		} else if all[i].response = done(outcome); all[i].response == nil {
			all[i].err = connect.NewError(connect.CodeInternal, errors.New("an outcome has neither answer nor failure"))
		}
	}
	return all, nil
}

func responseOf[M any](message *M) connect.AnyResponse {
	if message == nil {
		return nil
	}
	return connect.NewResponse(message)
}

// FailureError returns the error that a unary call would have returned for a failure in the answer of a batch: the same
// code, text and details, for [DecisionOf] and [ProblemOf].
func FailureError(failure *quoratev1.Failure) error {
	var code connect.Code
	if err := code.UnmarshalText([]byte(failure.GetCode())); err != nil {
		code = connect.CodeUnknown
	}
	answer := connect.NewWireError(code, errors.New(failure.GetMessage()))
	if failure.GetDecision() != nil {
		addDetail(answer, failure.GetDecision())
	}
	if failure.GetProblem() != nil {
		addDetail(answer, failure.GetProblem())
	}
	return answer
}

// addDetail adds a message that was decoded before, and so can be encoded.
func addDetail(answer *connect.Error, message proto.Message) {
	if detail, err := connect.NewErrorDetail(message); err == nil {
		answer.AddDetail(detail)
	}
}

// notSentError is the error of a call that was not sent before its context ended: it was certainly not carried out.
func notSentError(ctx context.Context) error {
	err := connect.NewError(codeOfContext(ctx), ctx.Err())
	addDetail(err, &quoratev1.Problem{Reason: "NOT_SENT", NotApplied: true})
	return err
}

func codeOfContext(ctx context.Context) connect.Code {
	if errors.Is(ctx.Err(), context.Canceled) {
		return connect.CodeCanceled
	}
	return connect.CodeDeadlineExceeded
}

// protocolHeaders are set for each call by connect; all calls of a batch have the same.
var protocolHeaders = []string{
	"Accept-Encoding", "Connect-Protocol-Version", "Connect-Timeout-Ms", "Content-Encoding", "Content-Type", "User-Agent",
}

// traceHeaders differ from call to call. A batch continues the trace of its first call.
var traceHeaders = []string{"Baggage", "Traceparent", "Tracestate"}

// headersOf returns the headers that the caller or its interceptors have set: as text without the trace headers, and as
// a copy with them. Only calls with equal texts are joined, so that no call goes under the credentials of another.
func headersOf(all http.Header) (shared string, own http.Header) {
	var names []string
	for name, values := range all {
		if slices.Contains(protocolHeaders, name) {
			continue
		}
		if own == nil {
			own = http.Header{}
		}
		own[name] = slices.Clone(values)
		if !slices.Contains(traceHeaders, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		shared += fmt.Sprintf("%q: %q\n", name, own[name])
	}
	return shared, own
}
