package nodes

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/quorate/quorate/chaos/overlay"
)

// TestAddTurnableClock: another version of Go may not have the source lines that the overlay changes.
func TestAddTurnableClock(t *testing.T) {
	o, err := overlay.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := AddTurnableClock(o); err != nil {
		t.Fatal(err)
	}
	path, err := o.Write()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var written struct{ Replace map[string]string }
	if err := json.Unmarshal(text, &written); err != nil {
		t.Fatal(err)
	}
	for original, replaced := range written.Replace {
		if source, err := os.ReadFile(replaced); err != nil || !strings.Contains(string(source), "chaosDeviates()") {
			t.Errorf("%s is replaced by %d bytes without a deviation: %v", original, len(source), err)
		}
	}
	if len(written.Replace) != 2 {
		t.Errorf("%d files are replaced, want 2", len(written.Replace))
	}
}
