package wire

import (
	"errors"
	"maps"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// gRPC sends an error in the trailer of the answer, and clients bound what they accept of it: gRPC's C core (Python,
// Ruby, PHP, C++) and grpc-java take 8 KiB and drop the whole error if it is larger. The text travels there twice, as
// a header and in the status with the details, which is sent as base64.
const (
	// MaxTrailerStatus bounds the status with the text and the details, in bytes before base64.
	MaxTrailerStatus = 4 << 10
	// MaxTrailerText bounds the text, in bytes after the percent encoding of gRPC.
	MaxTrailerText = 1 << 10
	// anyBytes is what a detail costs besides its own bytes: the tags, lengths and address of its type.
	anyBytes = 64
)

// FitError keeps the text of an error within its bound, and over gRPC the details, too. What is left out of a detail is
// counted in it.
func FitError(err error, overGRPC bool) error {
	var failed *connect.Error
	if !errors.As(err, &failed) {
		return err
	}
	details, text := failed.Details(), ShortText(failed.Message())
	switch {
	case overGRPC:
		text = fitText(text, MaxTrailerText)
		details = fitDetails(details, MaxTrailerStatus-proto.Size(&status.Status{Code: int32(failed.Code()), Message: text}))
	case len(text) == len(failed.Message()):
		return err
	}
	fitted := connect.NewError(failed.Code(), errors.New(text))
	for _, detail := range details {
		fitted.AddDetail(detail)
	}
	maps.Copy(fitted.Meta(), failed.Meta())
	return fitted
}

// fitDetails keeps what fits: the delay before a retry, then the detail of this API, then others.
func fitDetails(details []*connect.ErrorDetail, room int) []*connect.ErrorDetail {
	var kept, others []*connect.ErrorDetail
	keep := func(detail *connect.ErrorDetail) {
		if size := len(detail.Bytes()) + anyBytes; size <= room {
			room, kept = room-size, append(kept, detail)
		}
	}
	for _, detail := range details {
		if detail.Type() == retryInfo {
			keep(detail)
		} else {
			others = append(others, detail)
		}
	}
	for _, detail := range others {
		keep(fitDetail(detail, room-anyBytes))
	}
	return kept
}

// fitDetail does not change a detail of others.
func fitDetail(detail *connect.ErrorDetail, room int) *connect.ErrorDetail {
	value, broken := detail.Value()
	if broken != nil {
		return detail
	}
	switch whole := value.(type) {
	case *quoratev1.Decision:
		value = fitDecision(whole, room)
	case *quoratev1.Problem:
		value = fitProblem(whole, room)
	default:
		return detail
	}
	fitted, broken := connect.NewErrorDetail(value)
	if broken != nil {
		return detail
	}
	return fitted
}

var retryInfo = string((&errdetails.RetryInfo{}).ProtoReflect().Descriptor().FullName())

// fitDecision leaves the explanation out, because the text of the error is the same. If a part must be left out, half
// of the room is for the violations, so that they and what the caller asked for beside them are both seen.
func fitDecision(whole *quoratev1.Decision, room int) *quoratev1.Decision {
	fitted := &quoratev1.Decision{
		Outcome: whole.GetOutcome(), NeverFits: whole.GetNeverFits(), Index: whole.Index,
		Alternative: whole.GetAlternative(), Violations: whole.GetViolations(), Holders: whole.GetHolders(),
		Remedy: whole.GetRemedy(), Preempted: whole.GetPreempted(), Placements: whole.GetPlacements(),
		OtherViolations: whole.GetOtherViolations(),
	}
	if proto.Size(fitted) <= room {
		return fitted
	}
	fitted.Violations, fitted.Holders, fitted.Remedy, fitted.Preempted, fitted.Placements = nil, nil, nil, nil, nil
	room -= proto.Size(fitted) + countBytes
	useful := byUse(whole.GetViolations(), wireUse)
	fitted.Violations = fitList(useful, room/2)
	room -= listSize(fitted.GetViolations())
	fitted.Holders = fitList(whole.GetHolders(), room)
	room -= listSize(fitted.GetHolders())
	if size := elementSize(whole.GetRemedy()); size <= room {
		fitted.Remedy, room = whole.GetRemedy(), room-size
	}
	fitted.Preempted = fitList(whole.GetPreempted(), room)
	room -= listSize(fitted.GetPreempted())
	fitted.Violations = append(fitted.Violations, fitList(useful[len(fitted.GetViolations()):], room)...)
	fitted.OtherViolations += int32(len(useful) - len(fitted.GetViolations()))
	fitted.OtherHolders = int32(len(whole.GetHolders()) - len(fitted.GetHolders()))
	fitted.OtherPreempted = int32(len(whole.GetPreempted()) - len(fitted.GetPreempted()))
	return fitted
}

func fitProblem(whole *quoratev1.Problem, room int) *quoratev1.Problem {
	if proto.Size(whole) <= room {
		return whole
	}
	fitted := proto.CloneOf(whole)
	fitted.Breaches = nil
	fitted.Field = shortenText(fitted.GetField(), max(maxErrorKey, room-(proto.Size(fitted)-len(fitted.GetField()))))
	fitted.Breaches = fitList(whole.GetBreaches(), room-proto.Size(fitted)-countBytes)
	fitted.OtherBreaches = int32(len(whole.GetBreaches()) - len(fitted.GetBreaches()))
	return fitted
}

// countBytes is what the numbers of elements left out cost at most.
const countBytes = 3 * (1 + 5)

// elementSize is what a message costs as a field.
func elementSize(m proto.Message) int { return 2 + protowire.SizeBytes(proto.Size(m)) }

func listSize[M proto.Message](list []M) int {
	size := 0
	for _, m := range list {
		size += elementSize(m)
	}
	return size
}

// fitList is the longest beginning of a list that fits.
func fitList[M proto.Message](list []M, room int) []M {
	for i, m := range list {
		if room -= elementSize(m); room < 0 {
			return list[:i:i]
		}
	}
	return list
}

// fitText cuts a text where a clause ends, if one does in the second half of what fits.
func fitText(text string, most int) string {
	const rest, restBytes = "…", 9
	size, end := 0, 0
	for i := range len(text) {
		if size += escapedBytes(text[i]); size <= most-restBytes {
			end = i + 1
		}
	}
	if size <= most {
		return text
	}
	short := strings.ToValidUTF8(text[:end], "")
	if clause := strings.LastIndex(short, "; "); clause > len(short)/2 {
		short = short[:clause+2]
	}
	return short + rest
}

// escapedBytes is what a byte costs in the header grpc-message.
func escapedBytes(b byte) int {
	if b < ' ' || b > '~' || b == '%' {
		return 3
	}
	return 1
}
