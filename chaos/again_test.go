package chaos

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/quorate/quorate/chaos/check"
	"github.com/quorate/quorate/chaos/guarded"
	"github.com/quorate/quorate/chaos/history"
)

// TestJudgeAgain judges a history that an earlier run left behind, with its final states and what accounts were told if
// they lie beside it:
//
//	CHAOS_EVIDENCE=history.jsonl go test -C chaos -run TestJudgeAgain ./...
func TestJudgeAgain(t *testing.T) {
	path := os.Getenv("CHAOS_EVIDENCE")
	if path == "" {
		t.Skip("CHAOS_EVIDENCE names no history")
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it is only read
	h, err := history.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	finals, err := check.ReadFinals(check.FinalsBeside(path))
	if errors.Is(err, fs.ErrNotExist) {
		t.Log("there are no final states beside it, so only the history is judged")
	} else if err != nil {
		t.Fatal(err)
	}
	verdicts := check.JudgeWith(h, finals, check.Options{Pictures: filepath.Dir(path)})
	evidence, err := guarded.ReadEvidence(guarded.EvidenceBeside(path))
	if err == nil {
		verdicts = append(verdicts, guarded.Judge(evidence, h)...)
	} else if !errors.Is(err, fs.ErrNotExist) { // the cluster was open
		t.Fatal(err)
	}
	t.Logf("%d operations\n%s", len(h.Ops), verdicts)
	if err := verdicts.Err(); err != nil {
		t.Error(err)
	}
}
