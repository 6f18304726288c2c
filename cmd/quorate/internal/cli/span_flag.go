package cli

import (
	"time"

	"github.com/spf13/pflag"
)

// spanFlag is a flag with a time in the words of [ParseSpan].
type spanFlag struct{ to *time.Duration }

// SpanVar adds a flag with a time such as 90s, 1h30m or 7d.
func SpanVar(flags *pflag.FlagSet, to *time.Duration, name string, value time.Duration, usage string) {
	*to = value
	flags.Var(spanFlag{to}, name, usage)
}

// Set parses a time.
func (f spanFlag) Set(text string) error {
	span, err := parseSpan(text)
	if err != nil {
		return err
	}
	*f.to = span
	return nil
}

// String writes the time; 0, which help does not show as a default, if there is none.
func (f spanFlag) String() string {
	if f.to == nil || *f.to == 0 {
		return "0"
	}
	return FormatSpan(*f.to)
}

// Type is shown in help texts.
func (f spanFlag) Type() string { return "duration" }

// namedFlag is a flag whose value cannot be empty.
type namedFlag struct {
	to   *string
	flag string
}

// NameVar adds a flag that refuses an empty value: with an unset variable of a shell, --user "$WHO" would otherwise be
// a command without --user, which does something else.
func NameVar(flags *pflag.FlagSet, to *string, name, usage string) {
	flags.Var(namedFlag{to, name}, name, usage)
}

// Set takes a value that is not empty.
func (f namedFlag) Set(text string) error {
	if text == "" {
		return Usagef("it is empty: give it a value, or leave --%s out", f.flag)
	}
	*f.to = text
	return nil
}

// String is the value.
func (f namedFlag) String() string {
	if f.to == nil {
		return ""
	}
	return *f.to
}

// Type is shown in help texts.
func (f namedFlag) Type() string { return "string" }
