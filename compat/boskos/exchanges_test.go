package boskos

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The tests in the folder conformance run the same exchanges against the original and a cluster of real nodes.
var (
	playAt   = flag.String("at", "", "play the exchanges at this URL, which has the resources of exchanges.yaml")
	playInto = flag.String("record", "", "write what is answered into this file")
)

const exchangesFile = "testdata/exchanges.txt"

// TestExchanges sends the requests recorded with the original and expects the same answers.
func TestExchanges(t *testing.T) {
	url := *playAt
	if url == "" {
		config, err := os.ReadFile("testdata/exchanges.yaml")
		if err != nil {
			t.Fatal(err)
		}
		served := httptest.NewServer(NewHandler(loaded(t, string(config)).api(), Options{}))
		defer served.Close()
		url = served.URL
	}
	want, err := os.ReadFile(exchangesFile)
	if err != nil {
		t.Fatal(err)
	}
	got := play(t, url, string(want))
	if *playInto != "" {
		if err := os.WriteFile(*playInto, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the original (-), here (+):\n%s", diff)
	}
}

func play(t *testing.T, url, recording string) string {
	t.Helper()
	var out strings.Builder
	for block := range strings.SplitSeq(recording, "\n\n") {
		var request string
		for line := range strings.Lines(block + "\n") {
			switch {
			case strings.HasPrefix(line, "> "), strings.HasPrefix(line, "| "):
				if strings.HasPrefix(line, "> ") && request != "" {
					out.WriteString(exchange(t, url, request))
					request = ""
				}
				request += line
			case strings.HasPrefix(line, "#"):
				out.WriteString(line)
			}
		}
		if request != "" {
			out.WriteString(exchange(t, url, request))
		}
		out.WriteByte('\n')
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func exchange(t *testing.T, url, request string) string {
	t.Helper()
	head, body, hasBody := strings.Cut(strings.TrimSuffix(request, "\n"), "\n")
	method, target, _ := strings.Cut(strings.TrimPrefix(head, "> "), " ")
	var sent io.Reader = http.NoBody
	if hasBody {
		sent = strings.NewReader(strings.TrimPrefix(body, "| "))
	}
	asked, err := http.NewRequest(method, url+target, sent)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(asked)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		t.Fatal(err)
	}
	line := fmt.Sprintf("< %d %s %s", answer.StatusCode, answer.Header.Get("Content-Type"),
		answer.Header.Get("X-Content-Type-Options"))
	return request + strings.TrimRight(line, " ") + "\n" + visible(text)
}

var masks = map[*regexp.Regexp]string{
	regexp.MustCompile(`"lastupdate":"[-0-9T:.]+Z"`):              `"lastupdate":"TIME"`,
	regexp.MustCompile(`"name":"([0-9a-f-]{36}|cluster-[0-9]+)"`): `"name":"DYNAMIC"`,
	regexp.MustCompile(`"expiration-date":"[-0-9T:.]+Z"`):         `"expiration-date":"TIME"`,
}

func visible(body []byte) string {
	if len(body) == 0 {
		return ""
	}
	for pattern, mask := range masks {
		body = pattern.ReplaceAll(body, []byte(mask))
	}
	if ended, found := bytes.CutSuffix(body, []byte("\n")); found {
		body = append(ended, "⏎"...)
	}
	return string(body) + "\n"
}
