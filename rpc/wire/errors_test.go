package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

var rewrite = flag.Bool("rewrite", false, "rewrite golden files")

// TestErrorsGolden compares the error of every kind of refusal and of every reason of an accident with a golden file.
func TestErrorsGolden(t *testing.T) {
	var lines strings.Builder
	for kind := quota.Invalid; kind.String() != "UNKNOWN"; kind++ {
		refused := &quota.Error{Kind: kind, Field: "limits", Text: "the text"}
		if kind == quota.PolicyBreach {
			refused.Breaches = []quota.Breach{
				{Tree: "cern", Node: "atlas", Policy: "strict", Resource: "cores", Text: "101 > 100"},
			}
		}
		writeLine(t, &lines, kind.String(), ToError(refused))
	}
	for kind := access.Invalid; kind.String() != "UNKNOWN"; kind++ {
		refused := &access.Error{Kind: kind, Field: "bindings[1].hold-as", Text: "the text", Allowed: "what is allowed"}
		writeLine(t, &lines, "access "+kind.String(), ToError(refused))
	}
	for reason := cluster.NoLeader; reason.String() != "UNKNOWN"; reason++ {
		for _, certain := range []bool{true, false} {
			name := fmt.Sprintf("%s applied=%s", reason, map[bool]string{true: "no", false: "perhaps"}[certain])
			writeLine(t, &lines, name, ToError(&cluster.Error{Reason: reason, NotApplied: certain, Text: "the text"}))
		}
	}
	denied := quota.Decision{
		Violations: []quota.Violation{
			{Tree: "cern", Node: "atlas", Resource: "cores", Limit: 5, Used: 3, Requested: 4},
		},
	}
	writeLine(t, &lines, "denied", DenialError(denied, 7))
	writeLine(t, &lines, "deadline of the context", ToError(fmt.Errorf("reading: %w", context.DeadlineExceeded)))
	writeLine(t, &lines, "cancelled context", ToError(context.Canceled))
	writeLine(t, &lines, "anything else", ToError(errors.New("disk on fire")))
	compareGolden(t, "errors.txt", lines.String())
}

func writeLine(t *testing.T, to *strings.Builder, name string, err *connect.Error) {
	t.Helper()
	answer := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(t.Context(), "POST", "/x", nil)
	request.Header.Set("Content-Type", "application/json")
	if err := connect.NewErrorWriter().Write(answer, request, err); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(to, "%-32s %-20s %d  %q", name, err.Code(), answer.Code, err.Message())
	for _, d := range err.Details() {
		value, err := d.Value()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(to, "\n%32s %s %s", "", d.Type(), text(t, value))
	}
	to.WriteString("\n")
}

// text normalizes the spaces of protojson.
func text(t *testing.T, m proto.Message) string {
	t.Helper()
	spaced, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer // protojson adds a random space on purpose
	if err := json.Compact(&compact, spaced); err != nil {
		t.Fatal(err)
	}
	return compact.String()
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; if that is wanted, rewrite it with -args -rewrite.\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

func TestEveryKindHasACode(t *testing.T) {
	for kind := quota.Invalid; kind.String() != "UNKNOWN"; kind++ {
		if _, ok := refusalCodes[kind]; !ok {
			t.Errorf("no code for %s", kind)
		}
	}
	for kind := access.Invalid; kind.String() != "UNKNOWN"; kind++ {
		if _, ok := accessCodes[kind]; !ok {
			t.Errorf("no code for %s of access", kind)
		}
	}
	for reason := cluster.NoLeader; reason.String() != "UNKNOWN"; reason++ {
		if _, ok := nodeErrorCodes[reason]; !ok {
			t.Errorf("no code for %s", reason)
		}
	}
}

func TestFailureKeepsTheDecision(t *testing.T) {
	decision := quota.Decision{
		Violations: []quota.Violation{{Tree: "cern", Resource: "cores", Limit: 5, Used: 5, Requested: 1}},
	}
	failure := ToFailure(DenialError(decision, 7))
	if failure.GetCode() != "resource_exhausted" || failure.GetMessage() != decision.Explain() {
		t.Errorf("got %v", failure)
	}
	want := FromDecision(decision, nil)
	want.Index = new(uint64(7))
	if !proto.Equal(failure.GetDecision(), want) {
		t.Errorf("got decision %v", failure.GetDecision())
	}
	if other := ToFailure(RefusalError(&quota.Error{Kind: quota.NotFound, Text: "no"})); other.GetDecision() != nil ||
		other.GetCode() != "not_found" {
		t.Errorf("got %v", other)
	}
}
