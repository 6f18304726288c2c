package main

import (
	"regexp"
	"strings"
)

// place is a node of a tree, written TREE:node/path, or TREE for the root.
type place struct {
	tree, node string
}

func parsePlace(text string) (place, error) {
	tree, node, _ := strings.Cut(text, ":")
	if tree == "" {
		return place{}, usagef("%q is no place: write TREE for the root of a tree, or TREE:node/path", text)
	}
	if strings.HasPrefix(node, "/") || strings.HasSuffix(node, "/") {
		return place{}, usagef("%q is no place: the path of a node has no slash at its ends", text)
	}
	return place{tree, node}, nil
}

// String writes the place as it is parsed.
func (p place) String() string {
	if p.node == "" {
		return p.tree
	}
	return p.tree + ":" + p.node
}

// pair splits name=value.
func pair(text string) (name, value string, err error) {
	name, value, found := strings.Cut(text, "=")
	if !found || name == "" {
		return "", "", usagef("%q is no pair: write name=value", text)
	}
	return name, value, nil
}

// plainWord is what every shell takes as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_.,:/@%+=][A-Za-z0-9_.,:/@%+=-]*$`)

// shellWord writes a caller's text so that it can be pasted into a command line: an id may be any visible characters, also
// those that a shell would act upon.
func shellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	if strings.HasPrefix(text, "-") {
		return "-- " + quotedWord(text)
	}
	return quotedWord(text)
}

// quotedWord is a text as one word of a shell, also behind the = of a flag.
func quotedWord(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
