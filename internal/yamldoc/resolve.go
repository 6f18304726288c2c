package yamldoc

import (
	"regexp"
	"sync"
)

// Type is what a YAML reader makes of a text without quotes.
type Type string

// The types of the repository of YAML 1.1 (https://yaml.org/type), in words for people.
const (
	Text      Type = "a text"
	Null      Type = "nothing"
	Boolean   Type = "a boolean"
	Integer   Type = "a number"
	Float     Type = "a number with a point or an exponent"
	Timestamp Type = "a date"
	Special   Type = "a mark of YAML"
)

// types are the patterns of the type repository of YAML 1.1, joined with those of the core schema of YAML 1.2, where it
// takes more: Ansible, PyYAML and Ruby resolve by the former, most others by the latter, and Go's libraries by both.
var types = sync.OnceValue(func() []typePattern {
	pattern := func(t Type, expression string) typePattern {
		return typePattern{t, regexp.MustCompile(`^(?:` + expression + `)$`)}
	}
	return []typePattern{
		pattern(Null, `|~|null|Null|NULL`),
		pattern(Boolean, `(?i:y|yes|n|no|true|false|on|off)`),
		pattern(Integer, `[-+]?(?:0b[01_]+|0o?[0-7_]+|0|[1-9][0-9_,]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*(?::[0-5]?[0-9])+|0[0-9]+)`),
		pattern(Float, `[-+]?(?:[0-9][0-9_,]*)?\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_,]*(?:\.[0-9_]*)?[eE][-+]?[0-9]+|`+
			`[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?i:inf|nan)`),
		pattern(Timestamp, `[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?`+
			`(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::?[0-9]{2})?))?)?`),
		pattern(Special, `<<|=`),
	}
})

type typePattern struct {
	is      Type
	pattern *regexp.Regexp
}

// TypeOf returns what some YAML 1.1 or 1.2 reader makes of a text that stands in a document without quotes. It is Text
// only if all of them take it for one.
func TypeOf(plain string) Type {
	for _, t := range types() {
		if t.pattern.MatchString(plain) {
			return t.is
		}
	}
	return Text
}
