package quota

import "strings"

// Characters beyond letters and digits.
const (
	nodeExtra     = "_.@+-"
	resourceExtra = "_./-"
)

// validName tells whether s may name a tree or a node: 1 to MaxName letters, digits and _ . @ + -, beginning with a
// letter, a digit or _.
func validName(s string) bool { return validWord(s, nodeExtra) }

// validResource is the same for resources, which may hold slashes but no @ or +.
func validResource(s string) bool { return validWord(s, resourceExtra) }

// validItem is the same as validName for items, which may have longer names.
func validItem(s string) bool { return validLong(s, nodeExtra, MaxItemName) }

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

// validVisible tells whether s is at most max visible ASCII characters.
func validVisible(s string, max int) bool {
	for i := range len(s) {
		if s[i] < '!' || s[i] > '~' {
			return false
		}
	}
	return len(s) <= max
}

// checkPath refuses what cannot be the path of a node; the empty path is the root.
func checkPath(path, field string, depth int) *Error {
	if path == "" {
		return nil
	}
	if len(path) > MaxPath {
		return refuse(Invalid, field, "the path has %d bytes; at most %d are allowed", len(path), MaxPath)
	}
	names := strings.Split(path, "/")
	if len(names) > depth {
		return refuse(Invalid, field, "path %q is %d levels deep; at most %d are allowed", path, len(names), depth)
	}
	for _, name := range names {
		if !validName(name) {
			return refuse(Invalid, field, "path %q has the name %q; a name is 1 to %d letters, digits and %s, beginning with a letter, digit or _",
				path, name, MaxName, nodeExtra)
		}
	}
	return nil
}

// parentPath cuts the last name off; the parent of a top node is the root, the empty path.
func parentPath(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return ""
}

// childPath is the path of a child.
func childPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "/" + name
}

func lastName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// within tells whether path is the node at top or below it.
func within(path, top string) bool {
	return top == "" || path == top || strings.HasPrefix(path, top) && path[len(top)] == '/'
}
