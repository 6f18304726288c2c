package relay

import (
	"maps"
	"net/http"
	"reflect"
	"testing"
)

func TestHeadersPassStreamsUnchanged(t *testing.T) {
	for _, header := range []http.Header{
		{},
		{"Content-Type": {"application/proto"}, "X-A": {"", "two: words", " "}, "X-B": {"b"}, "Accept-Encoding": {"c", "d"}},
	} {
		got := HeadersFromWire(headersToWire(header))
		if !maps.EqualFunc(got, header, func(a, b []string) bool { return reflect.DeepEqual(a, b) }) {
			t.Errorf("%q became %q", header, got)
		}
		got.Add("X-B", "e")
		if c := got["Content-Type"]; len(header) > 0 && (len(c) != 1 || c[0] != "application/proto") {
			t.Errorf("a value that was added changed another header: %q", got)
		}
	}
}

func TestLinesThatAreNoHeaders(t *testing.T) {
	got := HeadersFromWire("x-a: 1\n\nno value\n: no name\nX-B: 2")
	if want := (http.Header{"X-A": {"1"}, "X-B": {"2"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
	if got := HeadersFromWire(headersToWire(http.Header{"X-A": {"1\nX-B: 2"}})); len(got) != 1 {
		t.Errorf("a line feed made another header: %q", got)
	}
}
