package wire

import (
	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
)

// patternTexts says in words what the patterns of the schema demand. TestPatternsHaveWords finds a pattern without.
var patternTexts = map[string]string{
	"^[!-~]{1,128}$":    "must be 1 to 128 visible ASCII characters, without spaces",
	"^[!-~]{0,128}$":    "must be at most 128 visible ASCII characters, without spaces",
	"^[!-)+-~]{0,256}$": "must be at most 256 visible ASCII characters, without spaces and *",
	"^[A-Za-z0-9_][A-Za-z0-9_./-]{0,62}$": "must be 1 to 63 letters, digits and _./-, beginning with a letter, a digit " +
		"or _",
	"^[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,62}$": "must be 1 to 63 letters, digits and _.@+-, beginning with a letter, a " +
		"digit or _",
}

// describePattern replaces the text about a pattern by words: a person should not have to read regular expressions.
func describePattern(violation *protovalidate.Violation) {
	if violation.Proto.GetRuleId() != "string.pattern" {
		return
	}
	text, known := patternTexts[violation.RuleValue.String()]
	if !known {
		return
	}
	described := proto.CloneOf(violation.Proto)
	described.SetMessage(text)
	violation.Proto = described
}
