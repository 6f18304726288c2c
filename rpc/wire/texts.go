package wire

import (
	"context"
	"errors"
	"maps"
	"strings"

	"connectrpc.com/connect"
)

// Maximum lengths of the parts of an error, in bytes. Errors quote the request and must not grow with it.
const (
	// MaxErrorText bounds the text of an error.
	MaxErrorText = 4 << 10
	// maxErrorField bounds the field that it names: the longest path and something more.
	maxErrorField = 2 << 10
	// maxErrorKey bounds a key of a map in the path of a field.
	maxErrorKey = 64
	// maxDecisionViolations is how many violations of limits an answer lists; its explanation says how many there are.
	// A request of 32 claims may violate each of 512 limits at 17 levels.
	maxDecisionViolations = 128
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
