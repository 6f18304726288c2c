package validate

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// document is the served description, with a record of what calls covered.
type document struct {
	text   *openapi3.T
	router routers.Router
	base   string
	// answered are the operations, such as "GET /path", that were answered with status 200; statuses those of errors.
	answered map[string]bool
	statuses map[int]bool
}

func loadDocument(t *testing.T, base string) *document {
	t.Helper()
	got := send(t, http.MethodGet, base+"/openapi.yaml", "")
	if got.status != http.StatusOK || got.header.Get("Content-Type") != "application/yaml" {
		t.Fatalf("the document is answered with %d %v", got.status, got.header)
	}
	text, err := openapi3.NewLoader().LoadFromData(got.body)
	if err != nil {
		t.Fatal(err)
	}
	if err := text.Validate(t.Context()); err != nil {
		t.Fatalf("the document is not valid: %v", err)
	}
	router, err := gorillamux.NewRouter(text)
	if err != nil {
		t.Fatal(err)
	}
	return &document{text: text, router: router, base: base, answered: map[string]bool{}, statuses: map[int]bool{}}
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

// send takes headers as pairs of names and values.
func send(t *testing.T, method, address, body string, header ...string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, content}
}

// exchange validates status, headers, content type and body of the answer. It returns what the document has against the
// request, too.
func (d *document) exchange(t *testing.T, method, path, body string, header ...string) (got answer, invalid error) {
	t.Helper()
	got = send(t, method, d.base+path, body, header...)
	if got.status != http.StatusOK {
		d.statuses[got.status] = true
	}
	request, err := http.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	route, parameters, err := d.router.FindRoute(request)
	if err != nil {
		d.checkError(t, got)
		return got, err
	}
	options := &openapi3filter.Options{
		AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true,
	}
	input := &openapi3filter.RequestValidationInput{
		Request: request, Route: route, PathParams: parameters, Options: options,
	}
	invalid = openapi3filter.ValidateRequest(t.Context(), input)
	err = openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: got.status, Header: got.header,
		Body: io.NopCloser(bytes.NewReader(got.body)), Options: options,
	})
	if err != nil {
		t.Errorf("%s %s: the answer %d %s is not as described: %v", method, path, got.status, got.body, err)
	}
	return got, invalid
}

// checkError validates an answer to a path that is not an operation: its body is an error like any other.
func (d *document) checkError(t *testing.T, got answer) {
	t.Helper()
	if got.status < http.StatusBadRequest || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("an unknown operation is answered with %d %v", got.status, got.header)
		return
	}
	d.checkValue(t, d.text.Components.Schemas["Error"].Value, got.body)
}

func query(path, message string) string {
	return path + "?connect=v1&encoding=json&message=" + url.QueryEscape(message)
}
