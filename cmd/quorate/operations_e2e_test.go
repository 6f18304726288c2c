package main_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/servertest"
)

// docs/operations.md is executed section by section, each in an empty folder and its own shell, which may leave servers
// running. A section marked <!-- given: NAME --> first runs the commands of section NAME. Fixed ports are replaced by
// free ones. Each output line on the page must occur in the actual output, in this order, ignoring numbers and spaces;
// "…" stands for omitted output, and [exit N] for an exit code other than 0.
const operationsPage = "../../docs/operations.md"

var (
	sectionHeads = regexp.MustCompile(`(?m)^## (.+)$`)
	givens       = regexp.MustCompile(`<!-- given: (.+?) -->`)
	fixedPorts   = regexp.MustCompile(`127\.0\.0\.1:(7[123]0\d|8080)\b`)
)

// quickSections are the sections that run in short mode.
var quickSections = map[string]bool{"Bootstrap": true, "Restore": true}

func TestOperations(t *testing.T) {
	t.Parallel()
	sections := readOperations(t)
	for _, name := range sections.names {
		if len(sections.sectionCommands(t, name)) == 0 {
			t.Errorf("the section %q has no command: mark its transcripts with console", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			if !quickSections[name] {
				onlyWithAllPages(t)
			}
			t.Parallel()
			newOperator(t).playSection(t, sections, name)
		})
	}
}

type book struct {
	names []string
	texts map[string]string
}

func readOperations(t *testing.T) book {
	t.Helper()
	text, err := os.ReadFile(operationsPage)
	if err != nil {
		t.Fatal(err)
	}
	b := book{texts: map[string]string{}}
	heads := sectionHeads.FindAllStringSubmatchIndex(string(text), -1)
	for i, head := range heads {
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		name := string(text[head[2]:head[3]])
		b.names = append(b.names, name)
		b.texts[name] = string(text[head[1]:end])
	}
	return b
}

type shownCommand struct {
	command string
	lines   []string
	code    int
}

func (b book) sectionCommands(t *testing.T, name string) []shownCommand {
	t.Helper()
	text, ok := b.texts[name]
	if !ok {
		t.Fatalf("%s has no section %q", operationsPage, name)
	}
	var list []shownCommand
	for _, block := range consoles.FindAllStringSubmatch(text, -1) {
		list = append(list, parseTranscript(block[1])...)
	}
	return list
}

func parseTranscript(block string) (list []shownCommand) {
	lines := strings.Split(strings.TrimSuffix(block, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		command, ok := strings.CutPrefix(lines[i], "$ ")
		switch {
		case ok:
			for strings.HasSuffix(lines[i], `\`) && i+1 < len(lines) {
				i++
				command += "\n" + lines[i]
			}
			list = append(list, shownCommand{command: command})
		case len(list) == 0:
		case strings.HasPrefix(lines[i], "[exit "):
			list[len(list)-1].code, _ = strconv.Atoi(strings.Trim(lines[i], "[exit ]"))
		case lines[i] != "" && lines[i] != "…":
			list[len(list)-1].lines = append(list[len(list)-1].lines, lines[i])
		}
	}
	return list
}

// operator is a shell in an otherwise empty folder with the examples.
type operator struct {
	in    io.Writer
	said  chan string
	ports map[string]string
	free  []string
	dir   string
}

func newOperator(t *testing.T) *operator {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"examples", "deploy"} {
		target, err := filepath.Abs(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command("bash", "--noprofile", "--norc")
	c.Dir, c.Env = dir, append(newShell(t, "", "").env, "QUORATE_SERVER_STABILIZATION_TIME=1s") // all are healthy
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.WaitDelay = 10 * time.Second
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, back, err := os.Pipe() // not a pipe of the command's: a server that it leaves behind holds it open
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout, c.Stderr = back, back
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_ = back.Close()
	o := &operator{
		in: in, said: make(chan string, 1000), ports: map[string]string{}, free: servertest.FreePorts(t, 40), dir: dir,
	}
	go o.readOutput(out)
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait()
		_ = out.Close()
		o.showLogs(t)
	})
	return o
}

func (o *operator) readOutput(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		o.said <- lines.Text()
	}
	close(o.said)
}

func (o *operator) showLogs(t *testing.T) {
	t.Helper()
	if !t.Failed() {
		return
	}
	logs, _ := filepath.Glob(filepath.Join(o.dir, "*.log"))
	for _, log := range logs {
		text, _ := os.ReadFile(log)
		t.Logf("%s:\n%s", filepath.Base(log), text)
	}
}

func (o *operator) playSection(t *testing.T, b book, name string) {
	t.Helper()
	if given := givens.FindStringSubmatch(b.texts[name]); given != nil {
		o.playSection(t, b, given[1])
	}
	for _, c := range b.sectionCommands(t, name) {
		said, code := o.runInShell(t, c.command)
		if code != c.code {
			t.Fatalf("%s\nended with %d, the page says %d\n%s", c.command, code, c.code, strings.Join(said, "\n"))
		}
		if missing := firstMissing(c.lines, said); missing != "" {
			t.Errorf("%s\ndid not say %q where the page says it:\n%s", c.command, missing, strings.Join(said, "\n"))
		}
	}
}

func (o *operator) runInShell(t *testing.T, command string) (said []string, code int) {
	t.Helper()
	const mark = "---ended-with---"
	line := fixedPorts.ReplaceAllStringFunc(command, o.freeFor)
	if _, err := fmt.Fprintf(o.in, "%s\ncode=$?; echo; echo %s $code\n", line, mark); err != nil {
		t.Fatalf("%s: the shell has ended: %v", command, err)
	}
	impatient := time.After(2 * patience)
	for {
		select {
		case line, open := <-o.said:
			if !open {
				t.Fatalf("%s ended the shell:\n%s", command, strings.Join(said, "\n"))
			}
			if rest, ends := strings.CutPrefix(line, mark+" "); ends {
				code, _ = strconv.Atoi(rest)
				return said, code
			}
			said = append(said, line)
		case <-impatient:
			t.Fatalf("%s has not ended:\n%s", command, strings.Join(said, "\n"))
		}
	}
}

func (o *operator) freeFor(fixed string) string {
	if o.ports[fixed] == "" {
		o.ports[fixed], o.free = o.free[0], o.free[1:]
	}
	return o.ports[fixed]
}

var (
	numbers = regexp.MustCompile(`[0-9a-f]{16,}|\d+(\.\d+)?`)
	gaps    = regexp.MustCompile(`[\s─-]+`)
)

// firstMissing returns the first line of the page that does not occur in its place in the output; empty if all do.
func firstMissing(shown, said []string) string {
	plain := func(line string) string {
		return strings.TrimSpace(gaps.ReplaceAllString(numbers.ReplaceAllString(line, "#"), " "))
	}
	next := 0
	for _, line := range shown {
		for next < len(said) && plain(said[next]) != plain(line) {
			next++
		}
		if next == len(said) {
			return line
		}
		next++
	}
	return ""
}

func TestOperationsFindsWhatWasNotSaid(t *testing.T) {
	said := []string{"n1  leader   17", "", "n2  follower 4"}
	if missing := firstMissing([]string{"n1 leader 3", "n2 follower 99"}, said); missing != "" {
		t.Errorf("%q is there", missing)
	}
	if missing := firstMissing([]string{"n2 follower 4", "n1 leader 17"}, said); missing != "n1 leader 17" {
		t.Errorf("the order is wrong, and %q was found missing", missing)
	}
	if list := parseTranscript("$ a \\\n  b\nx\n…\n[exit 4]\n$ c\n"); len(list) != 2 ||
		list[0].command != "a \\\n  b" || list[0].code != 4 || len(list[0].lines) != 1 {
		t.Errorf("read %+v", list)
	}
}
