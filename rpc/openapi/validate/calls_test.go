package validate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/servertest"
)

// call lacks "/quorate." in its path. In its bodies {{NAME}} stands for what earlier calls kept.
type call struct {
	procedure, body string
	// status is that of the answer; 0 means 200.
	status int
	// keep are places in the answer to keep, such as "id=token.id".
	keep []string
	// token is the name of a kept token, "" for that of the administrator, "-" for none.
	token string
	// invalid is true if the document must refuse the request too.
	invalid bool
}

type session struct {
	*document

	kept map[string]string
}

// make makes one call, and a second one as GET if it is a read that was answered.
func (s *session) make(t *testing.T, c call) answer {
	t.Helper()
	path, body := "/quorate."+c.procedure, s.fill(c.body)
	header := []string{"Content-Type", "application/json"}
	if token := s.credential(c.token); token != "" {
		header = append(header, "Authorization", "Bearer "+token)
	}
	var got answer
	var invalid error
	servertest.Await(t, patience, path+" finds a leader", func() bool {
		got, invalid = s.exchange(t, http.MethodPost, path, body, header...)
		return got.status != http.StatusServiceUnavailable
	})
	if want := cmp.Or(c.status, http.StatusOK); got.status != want {
		t.Errorf("POST %s %s: status %d, want %d: %s", path, body, got.status, want, got.body)
	}
	if (invalid != nil) != c.invalid {
		t.Errorf("POST %s %s: the document says of the request: %v", path, body, invalid)
	}
	if got.status != http.StatusOK {
		return got
	}
	s.answered["POST "+path] = true
	for _, place := range c.keep {
		s.keepPlace(t, place, got.body)
	}
	if item := s.text.Paths.Value(path); item != nil && item.Get != nil {
		got, invalid := s.exchange(t, http.MethodGet, query(path, body), "", header[2:]...)
		if got.status != http.StatusOK || invalid != nil {
			t.Errorf("GET %s %s: %d %s, request: %v", path, body, got.status, got.body, invalid)
		}
		s.answered["GET "+path] = true
	}
	return got
}

func (s *session) credential(name string) string {
	switch name {
	case "-":
		return ""
	case "":
		name = "admin"
	}
	return s.kept[name]
}

func (s *session) fill(body string) string {
	for name, value := range s.kept {
		body = strings.ReplaceAll(body, "{{"+name+"}}", value)
	}
	return body
}

// keepPlace keeps a text of an answer, such as "id=requests.0.id".
func (s *session) keepPlace(t *testing.T, place string, body []byte) {
	t.Helper()
	name, path, _ := strings.Cut(place, "=")
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(path, ".") {
		switch within := value.(type) {
		case map[string]any:
			value = within[part]
		case []any:
			if i, err := strconv.Atoi(part); err == nil && i < len(within) {
				value = within[i]
			}
		}
	}
	text, ok := value.(string)
	if !ok {
		t.Fatalf("%s is not a text in %s", path, body)
	}
	s.kept[name] = text
}

// TestAnswersAreAsDescribed calls every procedure of the document, in every way that it describes.
func TestAnswersAreAsDescribed(t *testing.T) {
	d := loadDocument(t, startServers(t))
	s := &session{d, map[string]string{"bootstrap": bootstrapSecret}}
	for _, group := range [][]call{
		accessCalls, treeCalls, allocationCalls, itemCalls, limitCalls, otherCalls, errorCalls, memberCalls,
	} {
		for _, c := range group {
			s.make(t, c)
		}
		if group[0].procedure == allocationCalls[0].procedure {
			s.checkStreams(t)
		}
	}
	s.checkProtocolErrors(t)
	s.checkCoverage(t)
}

// checkCoverage fails for an operation that was not answered well, and for a status of errors that was not seen.
func (s *session) checkCoverage(t *testing.T) {
	t.Helper()
	operations := 0
	for path, item := range s.text.Paths.Map() {
		for method := range item.Operations() {
			operations++
			if !s.answered[method+" "+path] {
				t.Errorf("no call of %s %s has been answered with status 200", method, path)
			}
		}
	}
	if operations < 100 {
		t.Errorf("the document has only %d operations", operations)
	}
	for status := range s.text.Components.Responses {
		number, err := strconv.Atoi(status)
		if err != nil {
			t.Fatal(err)
		}
		// A server that has lost its leader or has a bug is not made here.
		if rare := number == http.StatusServiceUnavailable || number == http.StatusInternalServerError; !rare &&
			!s.statuses[number] {
			t.Errorf("no error with status %d was seen", number)
		}
	}
	fmt.Printf("%d operations of %d paths answered as described\n", operations, s.text.Paths.Len())
}
