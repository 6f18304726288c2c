package config

import (
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/manifest"
)

type subtreeFlag struct {
	value *manifest.Subtree
}

// Set reads TREE:node/path.
func (f *subtreeFlag) Set(text string) error {
	place, err := cli.ParsePlace(text)
	if err != nil {
		return err
	}
	f.value = &manifest.Subtree{Tree: place.Tree, Node: place.Node}
	return nil
}

// String writes the node, or nothing.
func (f *subtreeFlag) String() string {
	if f.value == nil {
		return ""
	}
	return subtreeText(f.value)
}

// Type is shown in help texts.
func (f *subtreeFlag) Type() string { return cli.PlacePlaceholder }

func subtreeText(s *manifest.Subtree) string { return cli.PlaceOf(s.Tree, s.Node).String() }

// limitTo checks that a manifest is the text of the subtree that the flag names, and sets the subtree of a whole tree.
// The flag says what may change, so that a file cannot; the text says where it belongs, so that it is not applied
// elsewhere.
func (f *subtreeFlag) limitTo(m *manifest.Manifest, prune bool) error {
	at := f.String()
	switch {
	case f.value == nil && m.At != nil:
		own := subtreeText(m.At)
		return cli.Usagef("the manifest is the text of %s alone: apply it with --at %s", own, own)
	case f.value == nil:
		return nil
	case prune:
		return cli.Usagef("--at and --prune exclude each other: what the text of a subtree lacks is deleted there anyway")
	case m.At != nil && subtreeText(m.At) != at:
		return cli.Usagef("the manifest is the text of %s, not of %s", subtreeText(m.At), at)
	case f.value.Node != "" && m.At == nil:
		return cli.Usagef("the manifest is not the text of %s, which begins with \"at: %s\": "+
			"\"quorate manifest export --at %s\" prints it", at, at, at)
	case m.At == nil && (m.Access != nil || len(m.Policies) > 0 || len(m.Trees) != 1 || m.Trees[0].GetName() != at):
		return cli.Usagef("with --at %s the manifest has tree %q and nothing else", at, at)
	}
	m.At = f.value
	return nil
}
