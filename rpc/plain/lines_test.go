package plain

import (
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"testing"

	"pgregory.net/rapid"
)

func enveloped(flags byte, message string) string {
	head := []byte{flags, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(head[1:], uint32(len(message)))
	return string(head) + message
}

// TestLinesDoNotDependOnTheParts: however the parts of a stream arrive, its messages are lines, and an error after them
// is the last line.
func TestLinesDoNotDependOnTheParts(t *testing.T) {
	const failure = `{"code":"unavailable","message":"gone","details":[{"type":"unknown.Type"}]}`
	const sparse = `{"code":"aborted","message":"no","details":[{"type":"quorate.v1.Problem","value":"IAE",` +
		`"debug":{"notApplied":true}}]}`
	const complete = `{"code":"aborted","message":"no","details":[{"type":"quorate.v1.Problem","value":"IAE",` +
		`"debug":{"reason":"","field":"","breaches":[],"notApplied":true,"missingVerb":"","missingTree":"","missingNode":"",` +
		`"otherBreaches":0}}]}`
	for name, c := range map[string]struct {
		stream, want string
		status       int
	}{
		"messages": {
			enveloped(0, `{"a":1}`) + enveloped(0, `{"b":2}`) + enveloped(endFlag, `{"metadata":{}}`),
			"{\"a\":1}\n{\"b\":2}\n", http.StatusOK,
		},
		"an error later": {
			enveloped(0, `{"a":1}`) + enveloped(endFlag, `{"error":`+failure+`}`),
			"{\"a\":1}\n{\"error\":" + failure + "}\n", http.StatusOK,
		},
		"an error at once": {enveloped(endFlag, `{"error":`+failure+`}`), failure, http.StatusServiceUnavailable},
		"a detail without its zeros": {
			enveloped(0, `{"a":1}`) + enveloped(endFlag, `{"error":`+sparse+`}`),
			"{\"a\":1}\n{\"error\":" + complete + "}\n", http.StatusOK,
		},
		"nothing": {enveloped(endFlag, `{}`), "", http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				answer := httptest.NewRecorder()
				w := &lineWriter{ResponseWriter: answer}
				w.Header().Set(headerType, typeConnect)
				w.WriteHeader(http.StatusOK)
				for rest := c.stream; rest != ""; {
					part := rapid.IntRange(1, len(rest)).Draw(t, "part")
					if n, err := w.Write([]byte(rest[:part])); n != part || err != nil {
						t.Fatalf("wrote %d of %d: %v", n, part, err)
					}
					rest = rest[part:]
				}
				w.finish()
				if answer.Body.String() != c.want || answer.Code != c.status {
					t.Fatalf("got %d %q, want %d %q", answer.Code, answer.Body, c.status, c.want)
				}
			})
		})
	}
}
