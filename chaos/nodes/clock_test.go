package nodes

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestOverlay because it is a patch of this Go's standard library, which another Go may not take.
func TestOverlay(t *testing.T) {
	path, err := Overlay(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var overlay struct{ Replace map[string]string }
	if err := json.Unmarshal(text, &overlay); err != nil {
		t.Fatal(err)
	}
	for original, replaced := range overlay.Replace {
		if source, err := os.ReadFile(replaced); err != nil || !strings.Contains(string(source), "chaosDeviates()") {
			t.Errorf("%s is replaced by %d bytes without a deviation: %v", original, len(source), err)
		}
	}
	if len(overlay.Replace) != 2 {
		t.Errorf("%d files are replaced, want 2", len(overlay.Replace))
	}
}
