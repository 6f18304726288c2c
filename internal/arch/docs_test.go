package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

const root = "../.."

var (
	codeBlock = regexp.MustCompile("(?s)```.*?```")
	link      = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	// quotedPath is a path in backquotes; the second group is its first folder.
	quotedPath = regexp.MustCompile("`(([a-z]+)/[A-Za-z0-9_./-]*[A-Za-z0-9_-])/?`")
	anchorCut  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// TestLinks checks that every relative link of a Markdown page leads to a file, and its anchor to a heading.
func TestLinks(t *testing.T) {
	links := 0
	for path, text := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
			target, anchor := m[1], m[2]
			if strings.Contains(target, "://") {
				continue
			}
			links++
			file := path
			if target != "" {
				file = filepath.Join(filepath.Dir(path), target)
			}
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("%s links to %s, which does not exist", path, target)
				continue
			}
			if anchor != "" && !anchors(t, file)[anchor] {
				t.Errorf("%s links to the heading #%s of %s, which does not exist", path, anchor, file)
			}
		}
	}
	if links < 100 {
		t.Errorf("only %d links were found", links)
	}
}

// TestDecisionRecordsAreListed checks that the index of decision records has a line for each of them.
func TestDecisionRecordsAreListed(t *testing.T) {
	all := pages(t)
	index := all["docs/adr/README.md"]
	for path := range all {
		folder, name := filepath.Split(path)
		if folder == "docs/adr/" && name != "README.md" && !strings.Contains(index, "("+name+")") {
			t.Errorf("%s is not listed in docs/adr/README.md", path)
		}
	}
}

// TestPagesAreInTheSidebar checks that the site of the documentation lists every page of docs/; its build, which takes
// minutes, fails otherwise.
func TestPagesAreInTheSidebar(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/site/.vitepress/sidebar.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	for path := range pages(t) {
		folder, name := filepath.Split(path)
		if folder == "docs/" && !strings.Contains(string(text), `"`+strings.TrimSuffix(name, ".md")+`"`) {
			t.Errorf("%s is not listed in docs/site/.vitepress/sidebar.mjs", path)
		}
	}
}

// TestPathsOnPages checks that files which pages name exist. Decision records and changelogs may name what is gone.
func TestPathsOnPages(t *testing.T) {
	paths := 0
	for page, text := range pages(t) {
		if strings.HasPrefix(page, "docs/adr/") || strings.HasPrefix(page, "CHANGELOG") {
			continue
		}
		for _, m := range quotedPath.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
			if _, err := os.Stat(filepath.Join(root, m[2])); err != nil {
				continue // not a path of this repository
			}
			paths++
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s names %s, which does not exist", page, m[1])
			}
		}
	}
	if paths < 50 {
		t.Errorf("only %d paths were found", paths)
	}
}

// TestLinesOfPages checks that prose on pages has at most 120 columns; tables and code blocks may be wider.
func TestLinesOfPages(t *testing.T) {
	for path, text := range pages(t) {
		if path == "docs/server.md" || strings.Contains(path, "/") && !strings.HasPrefix(path, "docs/") {
			continue // generated, or the page of a package
		}
		for line := range strings.Lines(codeBlock.ReplaceAllString(text, "")) {
			if utf8.RuneCountInString(line) > 121 && !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "    ") {
				t.Errorf("%s has a line of more than 120 columns: %.40s…", path, line)
			}
		}
	}
}

func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		others := entry.Name() == "node_modules" || strings.HasPrefix(entry.Name(), ".")
		if entry.IsDir() && path != root && others {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".md") {
			return nil
		}
		text, err := os.ReadFile(path)
		found[filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func anchors(t *testing.T, file string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(string(text), ""), -1) {
		found[strings.ReplaceAll(anchorCut.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return found
}
