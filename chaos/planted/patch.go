package planted

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/quorate/quorate/chaos/overlay"
)

// patch is a unified diff of one or more files. Text before the first file is a comment.
type patch []filePatch

type filePatch struct {
	path  string // from the root of the module, with slashes
	hunks []hunk
}

// hunk replaces consecutive lines. They are found by their text, which must occur exactly once in the file. Line
// numbers change with every edit of the file, and the nearest place that looks alike may be another one than the
// author meant.
type hunk struct {
	header   string
	old, new string // whole lines
}

// parsePatch ignores the numbers in the headers of hunks.
func parsePatch(text string) (patch, error) {
	var p patch
	started := false
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case strings.HasPrefix(line, "--- a/") && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "+++ b/"):
			i++
			path := strings.TrimPrefix(lines[i], "+++ b/")
			if line != "--- a/"+path {
				return nil, fmt.Errorf("line %d: a patch cannot rename a file", i)
			}
			p, started = append(p, filePatch{path: path}), true
		case !started || strings.HasPrefix(line, "diff ") || strings.HasPrefix(line, "index "):
		case strings.HasPrefix(line, "@@"):
			last := &p[len(p)-1]
			last.hunks = append(last.hunks, hunk{header: line})
		default:
			if err := p[len(p)-1].addLine(line); err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
		}
	}
	if !started {
		return nil, errors.New("there is no diff in it")
	}
	return p, p.validate()
}

func (f *filePatch) addLine(line string) error {
	if len(f.hunks) == 0 {
		return errors.New("text between the name of a file and its first hunk")
	}
	h := &f.hunks[len(f.hunks)-1]
	if line == "" { // an editor removed the space of an empty context line
		line = " "
	}
	kind, line := line[0], line[1:]+"\n"
	switch kind {
	case ' ':
		h.old, h.new = h.old+line, h.new+line
	case '-':
		h.old += line
	case '+':
		h.new += line
	default:
		return fmt.Errorf("%q begins with neither a space, nor -, nor +", string(kind)+strings.TrimSuffix(line, "\n"))
	}
	return nil
}

// validate finds what would make a patch apply without changing anything.
func (p patch) validate() error {
	for _, f := range p {
		if len(f.hunks) == 0 {
			return fmt.Errorf("%s has no hunks", f.path)
		}
		for _, h := range f.hunks {
			if h.old == "" || h.old == h.new {
				return fmt.Errorf("%s: hunk %q needs context and a change", f.path, h.header)
			}
		}
	}
	return nil
}

func (p patch) addTo(root string, o *overlay.Overlay) error {
	for _, f := range p {
		path := filepath.Join(root, filepath.FromSlash(f.path))
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text, err := f.applyTo(string(source))
		if err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
		if err := o.Replace(path, text); err != nil {
			return err
		}
	}
	return nil
}

func (f filePatch) applyTo(source string) (string, error) {
	for _, h := range f.hunks {
		found := "\n" + source // so that a match begins at the beginning of a line
		if n := strings.Count(found, "\n"+h.old); n != 1 {
			return "", fmt.Errorf("the lines of hunk %q are there %d times, want 1:\n%s", h.header, n, h.old)
		}
		source = strings.Replace(found, "\n"+h.old, "\n"+h.new, 1)[1:]
	}
	return source, nil
}
