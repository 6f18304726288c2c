package wire

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"buf.build/go/protovalidate"
	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
)

// Lengths of what an error says, in bytes. Errors quote what the caller sent, and must not grow with it.
const (
	// MaxErrorText bounds the text of an error.
	MaxErrorText = 4 << 10
	// maxErrorField bounds the field that it names: the longest path and something more.
	maxErrorField = 2 << 10
	// maxErrorKey bounds a key of a map in the path of a field.
	maxErrorKey = 64
	// maxViolations is how many violations of the schema one error names.
	maxViolations = 20
	// thoroughBelow is the size of the largest request, encoded, of which all violations of the schema are looked
	// for: each costs some kilobytes. In a larger one the search ends at the first.
	thoroughBelow = 8 << 10
)

// shortenText cuts a text to at most so many bytes.
func shortenText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const rest = "…"
	return strings.ToValidUTF8(text[:most-len(rest)], "") + rest
}

// ShortText cuts a text to the length that an error may have.
func ShortText(text string) string { return shortenText(text, MaxErrorText) }

// BoundText keeps the text of an answer within its bound.
func BoundText(_ context.Context, err error) error {
	var failed *connect.Error
	if !errors.As(err, &failed) || len(failed.Message()) <= MaxErrorText {
		return err
	}
	short := connect.NewError(failed.Code(), errors.New(ShortText(failed.Message())))
	for _, detail := range failed.Details() {
		short.AddDetail(detail)
	}
	maps.Copy(short.Meta(), failed.Meta())
	return short
}

// BoundedValidator looks for all violations of the schema in a small request and for the first one in a large one, and
// keeps what it says short.
type BoundedValidator struct{ Rules protovalidate.Validator }

// Validate checks a message against the rules of its schema.
func (v BoundedValidator) Validate(m proto.Message, options ...protovalidate.ValidationOption) error {
	if proto.Size(m) > thoroughBelow {
		options = append(options, protovalidate.WithFailFast())
	}
	err := v.Rules.Validate(m, options...)
	var broken *protovalidate.ValidationError
	if errors.As(err, &broken) {
		shortenViolations(broken)
	}
	return err
}

func shortenViolations(broken *protovalidate.ValidationError) {
	if more := len(broken.Violations) - maxViolations; more > 0 {
		last := proto.CloneOf(broken.Violations[maxViolations].Proto)
		last.SetMessage(fmt.Sprintf("%s; %d more violations are left out", last.GetMessage(), more-1))
		broken.Violations[maxViolations].Proto = last
		broken.Violations = broken.Violations[:maxViolations+1]
	}
	for _, violation := range broken.Violations {
		for _, element := range violation.Proto.GetField().GetElements() {
			if key := element.GetStringKey(); len(key) > maxErrorKey {
				element.SetStringKey(shortenText(key, maxErrorKey))
			}
		}
	}
}
