package compat

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	maxName       = 63
	maxLabelValue = 256
)

var resourceName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./-]{0,62}$`)

// Name makes a name of a tree or node of any text, and different names of different texts. Letters, digits and _ . @ -
// stay as they are; every other byte, + included, becomes + and two hexadecimal digits: "team one" is "team+20one". A
// name begins with a letter, digit or _, so _ is put before anything else that is first.
//
// It is an error if the text is empty, or the name longer than 63 bytes.
func Name(text string) (string, error) {
	if text == "" {
		return "", fmt.Errorf("a name is empty")
	}
	var name strings.Builder
	for i := range len(text) {
		b := text[i]
		switch {
		case isWord(b) && (i > 0 || b != '_' || !escaped(text[1:])):
			name.WriteByte(b)
		case i > 0 && strings.IndexByte(".@-", b) >= 0:
			name.WriteByte(b)
		default:
			if i == 0 {
				name.WriteByte('_')
			}
			fmt.Fprintf(&name, "+%02X", b)
		}
	}
	if name.Len() > maxName {
		return "", fmt.Errorf("the name %.80q is too long: it has %d bytes as %q, and up to %d are allowed",
			text, name.Len(), clip(name.String(), maxName)+"…", maxName)
	}
	return name.String(), nil
}

// escaped tells whether a rest of a text begins with what Name writes with a +.
func escaped(rest string) bool {
	return rest != "" && !isWord(rest[0]) && strings.IndexByte(".@-", rest[0]) < 0
}

func isWord(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'A' <= b && b <= 'Z' || 'a' <= b && b <= 'z'
}

// IsResource tells whether a text may name a resource: 1 to 63 of letters, digits and _ . / -, beginning with a letter,
// digit or _.
func IsResource(text string) bool { return resourceName.MatchString(text) }

// Label cuts a text to what a label may hold, 256 bytes, at the end of a character.
func Label(text string) string { return clip(text, maxLabelValue) }

func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
