package access

import "strings"

// isVisible reports whether s consists of 1 to most visible ASCII characters.
func isVisible(s string, most int) bool {
	for i := range len(s) {
		if s[i] < '!' || s[i] > '~' {
			return false
		}
	}
	return s != "" && len(s) <= most
}

// isSubjectName reports whether s may name a user or a group: visible ASCII without "*". Names are compared whole; an
// asterisk is refused because it would look like a pattern.
func isSubjectName(s string) bool {
	return isVisible(s, MaxSubjectName) && !strings.Contains(s, "*")
}

const subjectNameRule = "a name has 1 to 256 visible ASCII characters without *"

func isIssuedName(s string) bool {
	issuer, name, found := strings.Cut(s, "/")
	return found && isShortName(issuer) && name != "" && isSubjectName(s)
}

// isShortName reports whether s may name an account, a role, an issuer or a front end: 1 to MaxName letters, digits
// and _ . @ + -, beginning with a letter, a digit or _. This is the rule for names of nodes.
func isShortName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
		if !letter && (i == 0 || strings.IndexByte(".@+-", c) < 0) {
			return false
		}
	}
	return s != "" && len(s) <= MaxName
}

const shortNameRule = "a name has 1 to 63 letters, digits and _ . @ + -, and begins with a letter, a digit or _"

// checkText refuses a free text that is too long or has control characters, which would reach terminals and logs.
func checkText(field, text string) *Error {
	if len(text) > MaxDescription {
		return invalid(field, "at most 1024 are allowed", "the text has %d bytes", len(text))
	}
	for i := range len(text) {
		if text[i] < ' ' || text[i] == 0x7f {
			return invalid(field, "write plain text on one line", "the text has the control character %#02x", text[i])
		}
	}
	return nil
}

// cloneList copies a list; an empty one becomes nil, so that equal canonical values are deeply equal.
func cloneList[T any](list []T) []T { return append([]T(nil), list...) }

func clip(s string) string {
	if len(s) > 2*MaxName {
		return s[:2*MaxName] + "..."
	}
	return s
}

func oneOf(words []string) string { return "allowed are " + strings.Join(words, ", ") }
