package rpc

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

const watchPath = "/quorate.v1.EventService/WatchEvents"

// TestWrongProtocols: whatever no protocol takes is answered with an error in JSON that says what is allowed.
func TestWrongProtocols(t *testing.T) {
	for name, c := range map[string]struct {
		method, path, body, contentType string
		status                          int
		says, field                     string
	}{
		"a form":        {"POST", usagePath, "{}", "application/x-www-form-urlencoded", 415, "application/json", "Content-Type"},
		"no type":       {"POST", usagePath, "{}", "", 415, "the header Content-Type is missing", "Content-Type"},
		"a charset":     {"POST", usagePath, "{}", "application/json; charset=latin1", 415, "allowed are", "Content-Type"},
		"a bare GET":    {"GET", usagePath, "", "", 405, "send POST with a body of JSON", ""},
		"a PUT":         {"PUT", allocatePath, "{}", "application/json", 405, "send POST", ""},
		"a typo":        {"POST", "/quorate.v1.TreeService/GetUse", "{}", "application/json", 404, "there is no procedure", ""},
		"a stream":      {"POST", watchPath, "{}", "application/proto", 415, "application/json for lines of JSON", "Content-Type"},
		"unknown field": {"POST", usagePath, `{"trees":1}`, "application/json", 400, `unknown field "trees"`, ""},
		"half JSON":     {"POST", usagePath, `{"tree":`, "application/json", 400, "not valid JSON", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := send(t, c.method, oneNode(t).url+c.path, c.body, "Content-Type", c.contentType)
			var e struct {
				Code, Message string
				Details       []struct {
					Type  string
					Debug json.RawMessage
				}
			}
			if err := json.Unmarshal([]byte(got.body), &e); err != nil || got.status != c.status || len(e.Details) != 1 {
				t.Fatalf("got %d %s (%v)", got.status, got.body, err)
			}
			problem := &quoratev1.Problem{}
			if err := protojson.Unmarshal(e.Details[0].Debug, problem); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(e.Message, c.says) || problem.GetReason() != "INVALID" || !problem.GetNotApplied() ||
				problem.GetField() != c.field || strings.ContainsRune(e.Message, '\u00a0') {
				t.Errorf("got %s", got.body)
			}
		})
	}
}

// TestStreamsAsLines: a plain JSON request gets a stream as lines of JSON, each at once.
func TestStreamsAsLines(t *testing.T) {
	d := oneNode(t)
	for _, id := range []string{"a", "b"} {
		body := `{"id":"` + id + `","claims":[{"tree":"cern","node":"physics/higgs","amounts":{"cores":"1"}}]}`
		if got := send(t, "POST", d.url+allocatePath, body); got.status != http.StatusOK {
			t.Fatal(got)
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), "POST", d.url+watchPath, strings.NewReader(`{"afterIndex":"1"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Connect-Accept-Encoding", "gzip")
	response, err := (&http.Client{Timeout: time.Minute}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if got := response.Header.Get("Content-Type"); got != "application/x-ndjson" {
		t.Errorf("content type %q", got)
	}
	lines := json.NewDecoder(response.Body)
	var ids []string
	for len(ids) < 2 {
		var line json.RawMessage
		if err := lines.Decode(&line); err != nil {
			t.Fatal(err)
		}
		m := &quoratev1.WatchEventsResponse{}
		if err := protojson.Unmarshal(line, m); err != nil {
			t.Fatal(err)
		}
		if m.GetChange().GetAllocation() != nil {
			ids = append(ids, m.GetChange().GetAllocation().GetId())
		}
	}
	if !slices.Equal(ids, []string{"a", "b"}) {
		t.Errorf("got %v", ids)
	}
}

// TestErrorsOfLines: an error before the first message has the status of an ordinary call.
func TestErrorsOfLines(t *testing.T) {
	d := oneNode(t)
	for body, want := range map[string]int{
		`{"node":"physics"}`: http.StatusBadRequest,
		`{"trees":1}`:        http.StatusBadRequest,
		`{"tree":"` + strings.Repeat("x", 1<<17) + `"}`: http.StatusRequestEntityTooLarge,
	} {
		got := send(t, "POST", d.url+watchPath, body)
		if got.status != want || !strings.Contains(got.body, `"code":"`) || !strings.Contains(got.body, "quorate.v1.Problem") {
			t.Errorf("%.40s: %d %s", body, got.status, got.body)
		}
	}
	unmeasured := io.MultiReader(strings.NewReader("{}"))
	request, err := http.NewRequestWithContext(t.Context(), "POST", d.url+watchPath, unmeasured)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusLengthRequired {
		t.Errorf("without a length: %d", response.StatusCode)
	}
}

// TestReasonsAreDocumented: docs/api.md and the protocol name every reason, with the code and status that it has.
func TestReasonsAreDocumented(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	page, schema := read("../docs/api.md"), read("../proto/quorate/v1/decision.proto")
	golden := regexp.MustCompile(`(?m)^([A-Z_]+)(?: applied=\w+)? +([a-z_]+) +(\d{3}) `)
	found := golden.FindAllStringSubmatch(read("wire/testdata/errors.txt"), -1)
	if len(found) < 20 {
		t.Fatalf("only %d reasons were found", len(found))
	}
	for _, reason := range found {
		row := regexp.MustCompile("(?m)^\\|[^|]*`" + reason[1] + "`[^|]*\\| `" + reason[2] + "` \\| " + reason[3] + " \\|")
		if !row.MatchString(page) {
			t.Errorf("docs/api.md has no row for %v", reason[1:])
		}
		if !regexp.MustCompile(`\b` + reason[1] + `\b`).MatchString(schema) {
			t.Errorf("decision.proto does not name %s", reason[1])
		}
	}
}
