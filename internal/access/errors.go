package access

import "fmt"

// ErrorKind is the reason of a refusal. The list is closed.
type ErrorKind uint8

// The closed list of kinds.
const (
	// Invalid: a value is malformed or contradicts itself, whatever the state.
	Invalid ErrorKind = iota + 1
	// NotFound: the named account, token or refusal does not exist.
	NotFound
	// AlreadyExists: the name or id belongs to an object with other content.
	AlreadyExists
	// InUse: the object is referred to by others.
	InUse
	// Full: a bound is reached.
	Full
	// Conflict: the state does not allow the change.
	Conflict
	// LastAdministrator: after the change no administrator could log in.
	LastAdministrator
	// Unauthenticated: the credential of a caller is not valid.
	Unauthenticated
)

// String is the kind's stable name.
func (k ErrorKind) String() string {
	names := [...]string{
		"", "INVALID", "NOT_FOUND", "ALREADY_EXISTS", "IN_USE", "FULL", "CONFLICT", "LAST_ADMINISTRATOR", "UNAUTHENTICATED",
	}
	if int(k) < len(names) {
		return names[k]
	}
	return "UNKNOWN"
}

// Error is a refusal. It is a value, equal on all replicas, and never reports an internal failure.
type Error struct {
	Kind ErrorKind
	// Field is the path of the offending field, for example "bindings[1].role"; may be empty.
	Field string
	// Text says what is wrong.
	Text string
	// Allowed says what is allowed, or what to do instead; may be empty.
	Allowed string
}

// Error joins field, text and what is allowed.
func (e *Error) Error() string {
	text := e.Text
	if e.Field != "" {
		text = e.Field + ": " + text
	}
	if e.Allowed != "" {
		text += "; " + e.Allowed
	}
	return text
}

// below takes nil as e.
func (e *Error) below(path string) *Error {
	switch {
	case e == nil || path == "":
	case e.Field == "":
		e.Field = path
	default:
		e.Field = path + "." + e.Field
	}
	return e
}

func indexed(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }

func invalid(field, allowed, format string, args ...any) *Error {
	return &Error{Kind: Invalid, Field: field, Text: fmt.Sprintf(format, args...), Allowed: allowed}
}

func refusal(kind ErrorKind, field, allowed, format string, args ...any) *Error {
	return &Error{Kind: kind, Field: field, Text: fmt.Sprintf(format, args...), Allowed: allowed}
}
