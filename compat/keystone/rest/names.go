package rest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/quorate/quorate/compat"
)

// Keystone allows 255 characters of any kind in the name of a resource, a tree 63 of letters, digits and _ . / -. A
// colon, as in Nova's class:VCPU, becomes a dot, and every other byte that a tree does not allow, a dot and a slash
// included, becomes ".-" and two hexadecimal digits; so does a colon before a dash. A region stands before the name
// with a slash: "north/volumes". That is what the converter of package keystone writes, too.

const (
	escapeMark  = ".-"
	hexDigits   = 2
	maxResource = 255 // characters, of a name in Keystone
)

// encodeResource returns the resource of a tree for a name and region of Keystone; the region is empty for none.
// Different pairs give different resources.
func encodeResource(region, name string) (string, error) {
	if name == "" || len([]rune(name)) > maxResource {
		return "", fmt.Errorf("resource_name has %d characters; allowed are 1 to %d", len([]rune(name)), maxResource)
	}
	encoded := escapeName(name)
	if region != "" {
		if region != escapeName(region) {
			return "", fmt.Errorf("region %.80q must consist of letters, digits, _ and -", region)
		}
		encoded = region + "/" + encoded
	}
	if !compat.IsResource(encoded) {
		return "", fmt.Errorf("resource_name %.80q would be %.80q here, which is not a valid name of a resource: "+
			"it must begin with a letter, digit or _, and have up to 63 characters", name, encoded)
	}
	return encoded, nil
}

func escapeName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case c == ':' && !strings.HasPrefix(name[i+1:], "-"):
			b.WriteByte('.')
		case isPlain(c):
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%s%02X", escapeMark, c)
		}
	}
	return b.String()
}

func isPlain(c byte) bool {
	return c == '_' || c == '-' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// decodeResource returns the name and region of Keystone for the resource of a tree, and false for a resource that
// encodeResource never returns: Keystone cannot name it.
func decodeResource(resource string) (region, name string, ok bool) {
	rest := resource
	if before, after, found := strings.Cut(resource, "/"); found {
		region, rest = before, after
	}
	var b strings.Builder
	for rest != "" {
		if escaped, found := strings.CutPrefix(rest, escapeMark); found && len(escaped) >= hexDigits {
			if c, err := strconv.ParseUint(escaped[:hexDigits], 16, 8); err == nil {
				b.WriteByte(byte(c))
				rest = escaped[hexDigits:]
				continue
			}
		}
		if rest[0] == '.' {
			b.WriteByte(':')
		} else {
			b.WriteByte(rest[0])
		}
		rest = rest[1:]
	}
	name = b.String()
	again, err := encodeResource(region, name)
	return region, name, err == nil && again == resource
}

// A limit has the id TREE:NODE~PATH:RESOURCE, a registered limit TREE:RESOURCE, with ~ for each slash. No name here has
// a colon or a ~, so that an id says what it stands for, and is the same on all servers.

func limitID(tree, path, resource string) string {
	return tree + ":" + replaceSlashes(path) + ":" + replaceSlashes(resource)
}

func registeredID(tree, resource string) string { return tree + ":" + replaceSlashes(resource) }

func replaceSlashes(text string) string { return strings.ReplaceAll(text, "/", "~") }

// splitID returns false if an id has another number of parts.
func splitID(id string, parts int) ([]string, bool) {
	list := strings.Split(id, ":")
	for i := range list {
		list[i] = strings.ReplaceAll(list[i], "~", "/")
	}
	return list, len(list) == parts
}
