package quota

import "strings"

// Characters allowed beyond letters, digits and underscores.
const (
	NodeNameExtra     = "_.@+-"
	ResourceNameExtra = "_./-"
)

// IsName reports whether s is a valid name of a tree or a node: 1 to MaxName letters, digits and _ . @ + -, beginning
// with a letter, a digit or _.
func IsName(s string) bool { return validWord(s, NodeNameExtra) }

// IsResourceName reports whether s is a valid name of a resource. It may contain slashes but no @ or +.
func IsResourceName(s string) bool { return validWord(s, ResourceNameExtra) }

// IsItemName reports whether s is a valid name of an item: like IsName, with at most MaxItemName bytes.
func IsItemName(s string) bool { return validLong(s, NodeNameExtra, MaxItemName) }

func validWord(s, extra string) bool { return validLong(s, extra, MaxName) }

func validLong(s, extra string, max int) bool {
	if s == "" || len(s) > max {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !alphanumeric(c) && c != '_' && (i == 0 || strings.IndexByte(extra, c) < 0) {
			return false
		}
	}
	return true
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// IsVisible reports whether s consists of at most max visible ASCII characters.
func IsVisible(s string, max int) bool {
	for i := range len(s) {
		if s[i] < '!' || s[i] > '~' {
			return false
		}
	}
	return len(s) <= max
}

// CheckPath refuses a path that cannot name a node. The empty path is the root.
func CheckPath(path, field string, depth int) *Error {
	if path == "" {
		return nil
	}
	if len(path) > MaxPath {
		return Errorf(Invalid, field, "the path has %d bytes; at most %d are allowed", len(path), MaxPath)
	}
	names := strings.Split(path, "/")
	if len(names) > depth {
		return Errorf(Invalid, field, "path %q is %d levels deep; at most %d are allowed", path, len(names), depth)
	}
	for _, name := range names {
		if !IsName(name) {
			return Errorf(
				Invalid, field, "path %q has the name %q; a name is 1 to %d letters, digits and %s, beginning with a "+
					"letter, digit or _",
				path, name, MaxName, NodeNameExtra)
		}
	}
	return nil
}

// ParentPath removes the last name. The parent of a top-level node is the root, the empty path.
func ParentPath(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return ""
}

// ChildPath is the path of a child with a name; the empty path is the root.
func ChildPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "/" + name
}

// LastName is the part of a path behind the last slash.
func LastName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// IsWithin reports whether path is the node at top or below it.
func IsWithin(path, top string) bool {
	return top == "" || path == top || strings.HasPrefix(path, top) && path[len(top)] == '/'
}

// Clip shortens quoted input for messages.
func Clip(s string) string {
	if len(s) > 2*MaxID {
		return s[:2*MaxID] + "..."
	}
	return s
}
