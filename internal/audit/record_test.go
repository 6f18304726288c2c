package audit_test

import (
	"crypto/sha256"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/audit"
)

// example has every field of the ledger's chain.
var example = audit.Record{
	Chain: audit.Ledger, Number: 7, Index: 42, TimeMs: 1234, WallMs: 1_790_000_000_123, Kind: audit.Configuration,
	Action: "SetLimits", Actor: audit.Actor{Kind: "account", User: "account/anna", Credential: "0011223344556677"},
	Outcome: audit.Applied, Reason: "more \"cores\"\n", Call: "c-1", RequestID: "r-1", Revision: 3,
	Changes:     []audit.Change{{Tree: "cern", Node: "atlas", Field: "limit cores", Before: "60", After: "61"}},
	ChangeCount: 1,
}

// TestALineIsStable: the bytes are hashed and compared between members, so they must never change.
func TestALineIsStable(t *testing.T) {
	_, line := audit.Encode(example, audit.Hash{})
	want := `{"chain":"ledger","number":7,"index":42,"time_ms":1234,"wall":"2026-09-21T14:13:20.123Z",` +
		`"kind":"configuration","action":"SetLimits","actor_kind":"account","user":"account/anna",` +
		`"credential":"0011223344556677","outcome":"applied","reason":"more \"cores\"\u000a","call":"c-1",` +
		`"request_id":"r-1","revision":3,"changes":[{"tree":"cern","node":"atlas","field":"limit cores",` +
		`"before":"60","after":"61"}],"change_count":1`
	content, hashes, _ := strings.Cut(string(line), `,"previous":`)
	if content != want {
		t.Errorf("got\n%s\nwant\n%s", content, want)
	}
	sum := sha256.Sum256(append(make([]byte, 32), content+"}"...))
	if want := `"` + strings.Repeat("0", 64) + `","hash":"` + audit.Hash(sum).String() + `"}`; hashes != want {
		t.Errorf("got the hashes %s, want %s", hashes, want)
	}
}

func texts() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.StringN(0, 5, -1),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 20), func(b []byte) string { return string(b) }),
		rapid.Map(rapid.IntRange(0, 700), func(n int) string { return strings.Repeat("é\u2028", n) }))
}

func records() *rapid.Generator[audit.Record] {
	return rapid.Custom(func(t *rapid.T) audit.Record {
		draw := func(name string) string { return texts().Draw(t, name) }
		r := audit.Record{
			Chain:  rapid.SampledFrom([]audit.ChainName{audit.Ledger, audit.Server}).Draw(t, "chain"),
			Number: rapid.Uint64Min(1).Draw(t, "number"), Index: rapid.Uint64().Draw(t, "index"),
			TimeMs: rapid.Int64().Draw(t, "time"), WallMs: rapid.Int64().Draw(t, "wall"), Server: draw("server"),
			Kind: audit.Refusal, Action: draw("action"), Outcome: audit.Refused, Detail: draw("detail"),
			Actor:   audit.Actor{Kind: draw("actor"), User: draw("user"), Credential: draw("credential"), Via: draw("via")},
			Address: draw("address"), Reason: draw("reason"), Call: draw("call"), RequestID: draw("request"),
			Revision: rapid.Uint64().Draw(t, "revision"), ChangeCount: rapid.Uint64().Draw(t, "changes"),
			Count: rapid.Uint64().Draw(t, "count"), From: rapid.Uint64().Draw(t, "from"), To: rapid.Uint64().Draw(t, "to"),
		}
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			r.Changes = append(r.Changes, audit.Change{
				Tree: draw("tree"), Node: draw("node"), Field: draw("field"), Before: draw("before"), After: draw("after"),
			})
		}
		return r
	})
}

// TestARecordIsReadBack: the reader understands every record, as any reader of JSON does.
func TestARecordIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		previous := audit.Hash(sha256.Sum256(rapid.SliceOf(rapid.Byte()).Draw(t, "previous")))
		written, line := audit.Encode(records().Draw(t, "record"), previous)
		if len(line) > audit.MaxLine || strings.ContainsAny(string(line), "\n\r\u2028") || !json.Valid(line) {
			t.Fatalf("the line is not one, too long or not JSON: %d bytes %q", len(line), line)
		}
		read, err := audit.Decode(line)
		if err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if !reflect.DeepEqual(read, written) {
			t.Fatalf("got\n%+v\nwant\n%+v", read, written)
		}
	})
}

// TestBoundsOfARecord: the largest record fits into a line.
func TestBoundsOfARecord(t *testing.T) {
	long := strings.Repeat("\x00", 2*audit.MaxText)
	r := audit.Record{
		Chain: audit.Ledger, Number: 1, Kind: audit.Configuration, Server: long, Action: long, Detail: long, Address: long,
		Actor: audit.Actor{Kind: long, User: long, Credential: long, Via: long}, Reason: long, Call: long, RequestID: long,
	}
	for range 2 * audit.MaxChanges {
		r.Changes = append(r.Changes, audit.Change{Tree: "t", Node: "n", Field: "f", Before: "1", After: "2"})
	}
	kept, _ := audit.Encode(r, audit.Hash{})
	if len(kept.Changes) != audit.MaxChanges || kept.ChangeCount != 2*audit.MaxChanges {
		t.Errorf("%d of %d changes are kept", len(kept.Changes), kept.ChangeCount)
	}
	if len(kept.Detail) != audit.MaxText || !strings.HasSuffix(kept.Detail, "…") {
		t.Errorf("a text of %d bytes is kept", len(kept.Detail))
	}
	r.Changes[0].Before, r.Changes[1].Before = long, long
	for i := range r.Changes {
		r.Changes[i].After = long
	}
	kept, line := audit.Encode(r, audit.Hash{})
	if len(line) > audit.MaxLine {
		t.Errorf("the line has %d bytes", len(line))
	}
	if n := len(kept.Changes); n == 0 || n >= audit.MaxChanges {
		t.Errorf("%d long changes are kept", n)
	}
}

// TestChangedLinesAreRefused: every change of a line is found.
func TestChangedLinesAreRefused(t *testing.T) {
	_, line := audit.Encode(example, audit.Hash{})
	rapid.Check(t, func(t *rapid.T) {
		changed := []byte(string(line))
		at := rapid.IntRange(0, len(line)-1).Draw(t, "at")
		changed[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		if r, err := audit.Decode(changed); err == nil {
			t.Fatalf("%s is read as %+v", changed, r)
		}
	})
	for name, other := range map[string]string{
		"blank": strings.Replace(string(line), ",", ", ", 1), "behind": string(line) + "{}",
		"unknown": strings.Replace(string(line), "{", `{"x":1,`, 1), "zero": strings.Replace(string(line), "{", `{"to":0,`, 1),
		"case": strings.Replace(string(line), "number", "Number", 1), "empty": "", "null": "null",
	} {
		if _, err := audit.Decode([]byte(other)); err == nil {
			t.Errorf("%s: %s is read", name, other)
		}
	}
}

// TestPlacesOfARecord: a record belongs to the nodes that it changed and to those above them.
func TestPlacesOfARecord(t *testing.T) {
	r := audit.Record{Changes: []audit.Change{{Tree: "cern", Node: "atlas/physics"}, {Field: "account anna"}}}
	for node, want := range map[string]bool{
		"": true, "atlas": true, "atlas/physics": true, "atl": false, "atlas/physics/x": false, "cms": false,
	} {
		if got := r.IsAt("cern", node); got != want {
			t.Errorf("at %q: %v", node, got)
		}
	}
	if r.IsAt("other", "") {
		t.Error("the record is at another tree")
	}
}
