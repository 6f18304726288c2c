package history_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/quorate/quorate/chaos/history"
)

func TestReadWhatIsRecorded(t *testing.T) {
	var file bytes.Buffer
	r := history.NewRecorder(&file)
	var busy sync.WaitGroup
	for i := range 20 {
		busy.Go(func() {
			at := r.Now()
			r.Add(history.Op{
				Workload: "deep", Client: i, Kind: history.Allocate, Call: at, Return: at + 5, Outcome: history.Refused,
				Reason:     history.Denied,
				Claims:     []history.Claim{{Tree: "t", Node: "a/b", Amounts: map[string]int64{"units": 3}}},
				Violations: []history.Violation{{Tree: "t", Limit: 5, Used: 4, Requested: 3, Missing: 2}},
			})
		})
	}
	busy.Wait()
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	h, err := history.Read(&file)
	if err != nil || len(h.Ops) != 20 || !reflect.DeepEqual(h, r.History()) {
		t.Errorf("got %d operations back, %v", len(h.Ops), err)
	}
	path := filepath.Join(t.TempDir(), "history.jsonl")
	if err := history.Write(path, h); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := history.Read(bytes.NewReader(written)); err != nil || !reflect.DeepEqual(again, h) {
		t.Errorf("a written history reads otherwise: %v", err)
	}
}

func TestReadNamesInvalidOperation(t *testing.T) {
	const good = `{"n":1,"kind":"release","call":1,"return":2,"outcome":"ok"}` + "\n"
	for text, want := range map[string]string{
		good: "", good + good[:30]: "",
		good + strings.Replace(good, "release", "dance", 1): `operation 2 of the history: kind is "dance"`,
		strings.Replace(good, "ok", "fine", 1):              `outcome is "fine"`,
		strings.Replace(good, "2,", "0,", 1):                "returned at 0",
		good + "nonsense\n":                                 "operation 2",
	} {
		h, err := history.Read(strings.NewReader(text))
		switch {
		case want == "" && (err != nil || len(h.Ops) != 1):
			t.Errorf("%q: got %d operations, %v", text, len(h.Ops), err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// FuzzRead: reading any file ends, and what was read can be written and read again unchanged.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"n":1,"kind":"change","call":1,"return":2,"outcome":"ok","index":7,"within":1,"change":"ENDED"}`))
	f.Add([]byte(`{"kind":"read-usage","call":0,"return":0,"outcome":"ok","usage":[{"tree":"t","resource":"r","used":-1,"limit":9}]}x`))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := history.Read(bytes.NewReader(text))
		if err != nil || len(h.Ops) == 0 {
			return
		}
		path := filepath.Join(t.TempDir(), "h")
		if err := history.Write(path, h); err != nil {
			t.Fatal(err)
		}
		written, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		again, err := history.Read(bytes.NewReader(written))
		if err != nil || len(again.Ops) != len(h.Ops) {
			t.Errorf("%d operations became %d: %v", len(h.Ops), len(again.Ops), err)
		}
	})
}
