package compat

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	maxName       = 63
	maxLabelValue = 256

	// shortMark stands between the beginning of a name that is too long and its digest. A + of an escape is followed by a
	// digit, so no other name has two in a row.
	shortMark   = "++"
	digestBytes = 8
)

var (
	nodeName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,62}$`)
	})
	resourceName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./-]{0,62}$`)
	})
)

// Name makes a name of a tree or node of any text but the empty one, and different names of different texts. Letters,
// digits and _ . @ - stay as they are; every other byte, + included, becomes + and two hexadecimal digits: "team one"
// is "team+20one". A name begins with a letter, digit or _, so _ is put before anything else that is first.
//
// A name has up to 63 bytes. One that would be longer is its first 45, two +, and the first 16 hexadecimal digits of
// the SHA-256 of the text.
func Name(text string) (string, error) {
	if text == "" {
		return "", errors.New("a name is empty")
	}
	var name strings.Builder
	for i := range len(text) {
		b := text[i]
		switch {
		case isWord(b) && (i > 0 || b != '_' || !isEscape(text[1:])):
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
	return shortenName(name.String(), text), nil
}

func shortenName(name, text string) string {
	if len(name) <= maxName {
		return name
	}
	digest := sha256.Sum256([]byte(text))
	end := fmt.Sprintf("%s%x", shortMark, digest[:digestBytes])
	return name[:maxName-len(end)] + end
}

// isEscape reports whether a text begins with a byte that Name writes as an escape.
func isEscape(rest string) bool {
	return rest != "" && !isWord(rest[0]) && strings.IndexByte(".@-", rest[0]) < 0
}

func isWord(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'A' <= b && b <= 'Z' || 'a' <= b && b <= 'z'
}

// IsName reports whether a text is a valid name of a tree or a node: 1 to 63 of letters, digits and _ . @ + -,
// beginning with a letter, digit or _.
func IsName(text string) bool { return nodeName().MatchString(text) }

// IsResource reports whether a text is a valid name of a resource: 1 to 63 of letters, digits and _ . / -, beginning
// with a letter, digit or _.
func IsResource(text string) bool { return resourceName().MatchString(text) }

// Label returns a text as a valid value of a label: without invalid UTF-8, and cut to at most 256 bytes at a character
// boundary.
func Label(text string) string { return clipText(strings.ToValidUTF8(text, ""), maxLabelValue) }

func clipText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
