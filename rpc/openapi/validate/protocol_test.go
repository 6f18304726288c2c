package validate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// lines is the content type of streams.
const lines = "application/x-ndjson"

func (d *document) checkValue(t *testing.T, schema *openapi3.Schema, text []byte) {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Errorf("%s is not JSON: %v", text, err)
		return
	}
	if err := schema.VisitJSON(value, openapi3.EnableJSONSchema2020()); err != nil {
		t.Errorf("%s is not as described: %v", text, err)
	}
}

// checkProtocolErrors makes calls that no procedure takes, or not in this way.
func (s *session) checkProtocolErrors(t *testing.T) {
	t.Helper()
	const (
		list  = "/quorate.v1.TreeService/ListTrees"
		apply = "/quorate.v1.TreeService/ApplyTrees"
		watch = "/quorate.v1.EventService/WatchEvents"
		kind  = "application/json"
	)
	token := "Bearer " + s.kept["admin"]
	for name, c := range map[string]struct {
		method, path, body string
		header             []string
		status             int
	}{
		"a read without a message": {http.MethodGet, list, "", nil, 405},
		"a write as GET":           {http.MethodGet, query(apply, `{}`), "", nil, 405},
		"another method":           {http.MethodPut, list, "{}", []string{"Content-Type", kind}, 405},
		"an unknown procedure":     {http.MethodPost, list + "2", "{}", []string{"Content-Type", kind}, 404},
		"another content type":     {http.MethodPost, list, "{}", []string{"Content-Type", "text/plain"}, 415},
		"no content type":          {http.MethodPost, list, "{}", nil, 415},
		"a large stream request":   {http.MethodPost, watch, strings.Repeat(" ", 1<<17), []string{"Content-Type", kind}, 413},
		"a deadline": {
			http.MethodPost, list, `{"read": {"minIndex": "99999999999"}}`,
			[]string{"Content-Type", kind, "Connect-Timeout-Ms", "100"}, 504,
		},
	} {
		header := append(c.header, "Authorization", token)
		if got, _ := s.exchange(t, c.method, c.path, c.body, header...); got.status != c.status {
			t.Errorf("%s: status %d, want %d: %s", name, got.status, c.status, got.body)
		}
	}
	s.checkUnknownLength(t, watch, token)
}

func (s *session) checkUnknownLength(t *testing.T, path, token string) {
	t.Helper()
	body := struct{ *strings.Reader }{strings.NewReader("{}")}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+path, body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	var text bytes.Buffer
	if _, err := text.ReadFrom(response.Body); err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusLengthRequired {
		t.Errorf("a body of unknown length is answered with %d", response.StatusCode)
	}
	s.statuses[response.StatusCode] = true
	s.checkError(t, answer{response.StatusCode, response.Header, text.Bytes()})
}

func (s *session) checkStreams(t *testing.T) {
	t.Helper()
	for path, body := range map[string]string{
		"/quorate.v1.EventService/WatchEvents":   `{"afterIndex": "1", "tree": "cern"}`,
		"/quorate.v1.ChangeService/WatchChanges": `{"trees": ["cern"]}`,
		"/quorate.admin.v1.SnapshotService/Save": `{}`,
	} {
		s.checkStream(t, path, body)
	}
}

func (s *session) checkStream(t *testing.T, path, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+s.kept["admin"])
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // the stream does not end
	described := s.text.Paths.Value(path).Post.Responses.Status(http.StatusOK).Value.Content[lines]
	if described == nil || response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != lines {
		t.Errorf("%s is answered with %d %v, described as %v", path, response.StatusCode, response.Header, described)
		return
	}
	text, err := bufio.NewReaderSize(response.Body, 1<<20).ReadBytes('\n')
	if err != nil {
		t.Errorf("%s: no line: %v", path, err)
		return
	}
	s.checkValue(t, described.Schema.Value, text)
	s.answered["POST "+path] = true
}
