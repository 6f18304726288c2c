package main_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/verify"
)

// The commands of each page are run in order against its own server. A block marked "console" is a transcript: lines
// that begin with "$ " are commands (a backslash at the end continues the line), the lines after a command are its
// complete output, and "[exit N]" is its exit code if it is not 0. Run the tests with -args -rewrite to rewrite the
// transcripts, and review the diff.
var pages = []string{
	"docs/site/index.md", "docs/share-accounts.md",
	"docs/from-zuul.md", "docs/from-yunikorn.md", "docs/from-quota-manager.md", "docs/from-boskos.md",
	"docs/configuration.md", "docs/policies.md", "docs/requests.md", "docs/leases.md",
	"docs/command-line.md", "docs/api.md",
	// transcripts of what pages only describe
	"cmd/quorate/testdata/features.txt", "cmd/quorate/testdata/zuul-waiting.txt",
	"cmd/quorate/testdata/from-keystone.txt", "cmd/quorate/testdata/from-yunikorn.txt",
	"cmd/quorate/testdata/from-quota-manager.txt", "cmd/quorate/testdata/configuration.txt",
	"cmd/quorate/testdata/policies.txt", "cmd/quorate/testdata/requests.txt", "cmd/quorate/testdata/leases.txt",
}

// quickPages run in short mode: one with Quorate's own commands, one with the protocol of another system.
var quickPages = map[string]bool{
	"docs/site/index.md": true, "docs/share-accounts.md": true,
	"docs/requests.md": true, "docs/from-boskos.md": true, "docs/command-line.md": true, "docs/api.md": true,
}

// onlyWithAllPages skips a page or section that make test leaves to make pages-test and to .ci/run.
func onlyWithAllPages(t *testing.T) {
	t.Helper()
	if os.Getenv("QUORATE_PAGES") != "all" {
		verify.Only(t)
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	for _, page := range pages {
		t.Run(filepath.Base(page), func(t *testing.T) {
			if !quickPages[page] {
				onlyWithAllPages(t)
			}
			t.Parallel()
			f, boskos := withBoskos(t)
			startServer(t, f)
			awaitCivilTime(t, f) // pages schedule limits
			shell := newShell(t, f.baseURL(), boskos)
			shell.playPage(t, page)
		})
	}
}

// TestAccessPage runs the commands of docs/access.md in a folder of their own, because they write tokens into it, and
// against a server that knows the bootstrap secret in it.
func TestAccessPage(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"docs/access.md", "cmd/quorate/testdata/access.txt"} {
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			playPageInFolder(t, page)
		})
	}
}

// playPageInFolder plays a page in a folder of its own, with the examples and a bootstrap secret in it.
func playPageInFolder(t *testing.T, page string, flags ...string) {
	t.Helper()
	dir := t.TempDir()
	secret := filepath.Join(dir, "bootstrap.secret")
	if err := os.WriteFile(secret, []byte(strings.Repeat("s", 43)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(examples, filepath.Join(dir, "examples")); err != nil {
		t.Fatal(err)
	}
	f := singleServer(t, append(flags, "--bootstrap-secret-file", secret)...)
	startServer(t, f)
	shell := newShell(t, f.baseURL(), "")
	shell.dir = dir
	shell.playPage(t, page)
}

func (s *shell) playPage(t *testing.T, page string) {
	t.Helper()
	file := filepath.Join("..", "..", page)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	played := consoles.ReplaceAllStringFunc(string(text), func(block string) string {
		return "```console\n" + s.playTranscript(t, consoles.FindStringSubmatch(block)[1]) + "```"
	})
	switch {
	case s.commands == 0:
		t.Errorf("%s has no command: mark its transcripts with console", page)
	case isRewriting():
		if err := os.WriteFile(file, []byte(played), 0o644); err != nil {
			t.Fatal(err)
		}
	case played != string(text):
		t.Errorf("%s is not what happens; with -args -rewrite it becomes:\n%s", page, played)
	}
}

// readmeLines bounds the README: it says what Quorate is for, and the pages say the rest.
const readmeLines = 150

// TestReadme runs the commands of the README in order, except make and the servers. The README shows only the beginning
// of the output, or none. A command that is shown denied ends with exit code 3, and one that does not wait with 9.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); lines > readmeLines {
		t.Errorf("the README has %d lines, more than %d", lines, readmeLines)
	}
	f := singleServer(t)
	startServer(t, f)
	shell := newShell(t, f.baseURL(), "")
	for _, block := range consoles.FindAllStringSubmatch(string(text), -1) {
		for _, command := range strings.Split(strings.ReplaceAll(block[1], "\\\n", ""), "$ ")[1:] {
			command, said, _ := strings.Cut(command, "\n")
			if notForReaders.MatchString(command) {
				continue
			}
			end := ""
			switch {
			case strings.HasPrefix(said, "quorate: denied"):
				end = "[exit 3]\n"
			case strings.Contains(command, " --async "):
				end = "[exit 9]\n"
			}
			got := shell.runInShell(t, command)
			if !strings.HasPrefix(got, said) || !strings.HasSuffix(got, end) || end == "" &&
				strings.Contains(got, "[exit ") {
				t.Errorf("%s\n%s", command, got)
			}
		}
	}
	if shell.commands < 10 {
		t.Errorf("only %d commands were found", shell.commands)
	}
}

// TestPostgresPage runs the commands of the page in a folder of its own, because they write files. The SQL on the page
// is that of the comparison, which is measured.
func TestPostgresPage(t *testing.T) {
	t.Parallel()
	playPageInFolder(t, "docs/or-postgres.md")
	page, err := os.ReadFile("../../docs/or-postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	sql, err := os.ReadFile("../../tools/bench/compare/systems/postgres.sql")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```sql\n"+string(sql)+"```\n") {
		t.Error("docs/or-postgres.md has another SQL than tools/bench/compare/systems/postgres.sql")
	}
}

var notForReaders = regexp.MustCompile("^(make|echo|quorate (dev|server|top)) ")

var consoles = regexp.MustCompile("(?s)```console\n(.*?)```")

func isRewriting() bool { return flag.Lookup("rewrite").Value.String() == "true" }

type shell struct {
	server   string
	boskos   string
	dir      string // the root of the checkout unless set
	env      []string
	commands int
}

// The server addresses that pages use.
const (
	pageServer = "http://127.0.0.1:7101"
	pageBoskos = "http://127.0.0.1:8080"
)

// pageTime replaces every time in transcripts.
const pageTime = "2026-11-20T12:00:00Z"

var times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

// pageToken replaces the id of every token in transcripts.
const pageToken = "0123456789abc"

var tokenIDs = regexp.MustCompile(`(?m)(^|token )[a-z2-7]{13}\b`)

// waits matches the time that a command has waited, which transcripts write as 0s.
var waits = regexp.MustCompile(`(waiting|not granted after) \d+s`)

func newShell(t *testing.T, server, boskos string) *shell {
	t.Helper()
	bin := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"quorate": binary, "curl": self} {
		if err := os.Symlink(target, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	env := append(os.Environ(), "NO_COLOR=1", "QUORATE_SERVER="+server,
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return &shell{server: server, boskos: boskos, dir: filepath.Join("..", ".."), env: env}
}

// playTranscript returns the transcript with the actual output.
func (s *shell) playTranscript(t *testing.T, transcript string) string {
	t.Helper()
	var out strings.Builder
	lines := strings.Split(transcript, "\n")
	for i := 0; i < len(lines); i++ {
		command, ok := strings.CutPrefix(lines[i], "$ ")
		if !ok {
			continue // the output of an earlier run
		}
		out.WriteString(lines[i] + "\n")
		for strings.HasSuffix(lines[i], `\`) && i+1 < len(lines) {
			i++
			out.WriteString(lines[i] + "\n")
			command += "\n" + lines[i]
		}
		out.WriteString(s.runInShell(t, command))
	}
	return out.String()
}

func (s *shell) runInShell(t *testing.T, command string) string {
	t.Helper()
	s.commands++
	addresses := strings.NewReplacer(pageServer, s.server, pageBoskos, s.boskos)
	command = addresses.Replace(command)
	c := exec.Command("sh", "-c", command)
	c.Dir, c.Env = s.dir, s.env
	if name, value, ok := exportOf(command); ok { // for the commands behind it, which have shells of their own
		s.env = append(s.env, name+"="+value)
	}
	said, err := c.CombinedOutput()
	text := strings.ReplaceAll(string(said), s.server, pageServer)
	text = times.ReplaceAllString(text, pageTime)
	text = waits.ReplaceAllString(text, "$1 0s")
	text = tokenIDs.ReplaceAllString(text, "${1}"+pageToken)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if c.ProcessState == nil {
		t.Fatalf("%s: %v", command, err)
	}
	if code := c.ProcessState.ExitCode(); code != 0 {
		text += fmt.Sprintf("[exit %d]\n", code)
	}
	return text
}

func exportOf(command string) (name, value string, ok bool) {
	assignment, ok := strings.CutPrefix(command, "export ")
	if !ok {
		return "", "", false
	}
	return strings.Cut(assignment, "=")
}

// runCurl implements the options of curl that the pages use, so that the tests do not need it: -s, -X METHOD, -d or
// --data-binary DATA, -H HEADER and one URL.
func runCurl(args []string) error {
	var url, data, asked string
	header := http.Header{}
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "-s":
		case (args[i] == "-d" || args[i] == "--data-binary") && i+1 < len(args):
			i++
			data = args[i]
		case args[i] == "-X" && i+1 < len(args):
			i++
			asked = args[i]
		case args[i] == "-H" && i+1 < len(args):
			i++
			name, value, _ := strings.Cut(args[i], ":")
			header.Set(name, strings.TrimSpace(value))
		default:
			url = args[i]
		}
	}
	method := http.MethodGet
	if data != "" {
		method = http.MethodPost
		if file, ok := strings.CutPrefix(data, "@"); ok {
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			data = string(content)
		}
	}
	request, err := http.NewRequest(cmp.Or(asked, method), url, bytes.NewBufferString(data))
	if err != nil {
		return err
	}
	request.Header = header
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // reading only
	_, err = io.Copy(os.Stdout, answer.Body)
	return err
}
