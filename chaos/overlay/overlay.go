// Package overlay collects replacements of source files for the -overlay flag of go build and go test.
package overlay

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Overlay is a set of source files that are replaced in a build. The files themselves stay as they are.
type Overlay struct {
	dir     string
	replace map[string]string // original path -> path of its replacement
}

// New makes an empty overlay that keeps its files in dir, which is created if necessary.
func New(dir string) (*Overlay, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("create an overlay: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create an overlay: %w", err)
	}
	return &Overlay{dir: dir, replace: map[string]string{}}, nil
}

// Replace makes builds read text in place of the file at path, which need not exist.
func (o *Overlay) Replace(path, text string) error {
	original, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	// Folders are flattened, so the number keeps files of one name apart.
	replacement := filepath.Join(o.dir, strconv.Itoa(len(o.replace))+"_"+filepath.Base(path))
	if err := os.WriteFile(replacement, []byte(text), 0o600); err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	o.replace[original] = replacement
	return nil
}

// Write writes the file that -overlay expects and returns its path.
func (o *Overlay) Write() (string, error) {
	text, err := json.Marshal(map[string]any{"Replace": o.replace})
	if err != nil {
		return "", fmt.Errorf("write an overlay: %w", err)
	}
	path := filepath.Join(o.dir, "overlay.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", fmt.Errorf("write an overlay: %w", err)
	}
	return path, nil
}
