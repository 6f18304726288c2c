package wire

import "strings"

// Maximum lengths of the parts of an error, in bytes. Errors quote the request and must not grow with it.
const (
	// MaxErrorText bounds the text of an error.
	MaxErrorText = 4 << 10
	// maxErrorField bounds the field that it names: the longest path and something more.
	maxErrorField = 2 << 10
	// maxErrorKey bounds a key of a map in the path of a field.
	maxErrorKey = 64
	// maxDecisionViolations is how many violations of limits an answer lists, the most useful ones.
	// A request of 32 claims may violate each of 512 limits at 17 levels.
	maxDecisionViolations = 128
	// maxViolations is how many violations of the schema one error names.
	maxViolations = 20
	// thoroughBelow is the size of the largest request, encoded, of which all violations of the schema are looked
	// for: each costs some kilobytes. In a larger one the search ends at the first.
	thoroughBelow = 8 << 10
)

func shortenText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const rest = "…"
	return strings.ToValidUTF8(text[:most-len(rest)], "") + rest
}

// ShortText cuts a text to the length that an error may have.
func ShortText(text string) string { return shortenText(text, MaxErrorText) }
