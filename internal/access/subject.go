package access

import (
	"cmp"
	"slices"
	"strings"
)

// SubjectKind says what a binding names. The numbers are part of the log format.
type SubjectKind uint8

// The closed list of kinds.
const (
	// User is one identity of an issuer: "user github/456789".
	User SubjectKind = iota + 1
	// Group is everyone in a group: "group corp/sre" of an issuer, "group robots" of accounts.
	Group
	// AccountSubject is one account of the book: "account ci".
	AccountSubject
	// Everyone is each caller with an identity.
	Everyone
	// AnonymousSubject is each caller without one.
	AnonymousSubject
)

var subjectKinds = [...]string{"", "user", "group", "account", "everyone", "anonymous"}

// String is the first word of the subject's text.
func (k SubjectKind) String() string {
	if int(k) < len(subjectKinds) {
		return subjectKinds[k]
	}
	return "unknown"
}

// hasName is false for the kinds that are a word of their own.
func (k SubjectKind) hasName() bool { return k != Everyone && k != AnonymousSubject }

// Subject names callers. Its text is the kind, and the name after a blank if the kind has one. Names are compared
// whole, byte by byte: there are no patterns and no prefixes.
type Subject struct {
	Kind SubjectKind
	// Name is ISSUER/NAME for users, ISSUER/NAME or a name without a slash for groups, and a name for accounts.
	Name string
}

const subjectRule = `write "user ISSUER/NAME", "group NAME", "account NAME", "everyone" or "anonymous"`

// ParseSubject reads the text of a subject. Every valid text is canonical: String returns it unchanged.
func ParseSubject(text string) (Subject, *Error) {
	word, name, blank := strings.Cut(text, " ")
	for kind := User; kind <= AnonymousSubject; kind++ {
		if word != kind.String() {
			continue
		}
		if blank != kind.hasName() {
			break
		}
		s := Subject{Kind: kind, Name: name}
		return s, s.Check()
	}
	return Subject{}, invalid("", subjectRule, "%q is not a subject", clip(text))
}

// String is the text of the subject, which ParseSubject reads.
func (s Subject) String() string {
	if !s.Kind.hasName() {
		return s.Kind.String()
	}
	return s.Kind.String() + " " + s.Name
}

// Check refuses a subject that ParseSubject would refuse.
func (s Subject) Check() *Error {
	switch s.Kind {
	case User:
		switch {
		case strings.HasPrefix(s.Name, accountPrefix):
			return invalid("", `write "account `+clip(s.Name[len(accountPrefix):])+`"`, "user %q is an account", clip(s.Name))
		case !isIssuedName(s.Name):
			return invalid("", subjectNameRule, "%q is not a user ISSUER/NAME", clip(s.Name))
		}
	case Group:
		if !isGroupName(s.Name) {
			return invalid("", subjectNameRule, "%q is not a group NAME or ISSUER/NAME", clip(s.Name))
		}
	case AccountSubject:
		if !isShortName(s.Name) {
			return invalid("", shortNameRule, "%q is not a name of an account", clip(s.Name))
		}
	case Everyone, AnonymousSubject:
		if s.Name != "" {
			return invalid("", subjectRule, "%s has the name %q", s.Kind, clip(s.Name))
		}
	default:
		return invalid("", subjectRule, "%d is not a kind of subject", uint8(s.Kind))
	}
	return nil
}

// isGroupName reports whether s names a group: ISSUER/NAME, or a short name for a group of accounts.
func isGroupName(s string) bool { return isShortName(s) || isIssuedName(s) }

// Compare orders subjects by kind and name.
func (s Subject) Compare(other Subject) int {
	if c := cmp.Compare(s.Kind, other.Kind); c != 0 {
		return c
	}
	return strings.Compare(s.Name, other.Name)
}

func canonicalSubjects(list []Subject) []Subject {
	sorted := cloneList(list)
	slices.SortFunc(sorted, Subject.Compare)
	return slices.Compact(sorted)
}
