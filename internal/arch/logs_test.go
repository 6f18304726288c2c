package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// logsPage explains every message that a server can log at level info and above.
const logsPage = "docs/log-messages.md"

// loggingFolders have the packages of a server.
var loggingFolders = []string{"cluster", "cmd", "compat", "fsm", "internal", "quota", "rpc", "web"}

var (
	// logReceiver matches the names of fields and variables that are loggers.
	logReceiver = regexp.MustCompile(`(?i)^(log|logger)$`)
	// documentedMessage is a row of the page: the message and its level.
	documentedMessage = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (info|warn|error) \\|")
)

// passedOn are the calls whose message comes from a caller or a library; the page has those of raft and memberlist.
var passedOn = map[string]bool{
	"cluster/host/transport.go":        true,
	"cluster/raftguard/repeats_log.go": true,
}

// TestLogMessagesAreDocumented: every message of the code is on the page with its level, and every message of the page
// is in the code, or in the section of a library.
func TestLogMessagesAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, logsPage))
	if err != nil {
		t.Fatal(err)
	}
	own, libraries, found := strings.Cut(string(text), "\n## Messages of libraries\n")
	if !found {
		t.Fatalf("%s has no section about libraries", logsPage)
	}
	for section := range strings.SplitSeq(libraries, "\n### ") {
		checkLibraryMessages(t, section)
	}
	documented := map[string]bool{}
	for _, m := range documentedMessage.FindAllStringSubmatch(own, -1) {
		documented[m[2]+": "+m[1]] = true
	}
	logged := loggedMessages(t)
	for message, where := range logged {
		if !documented[message] {
			t.Errorf("%s logs a message that %s lacks: %s", where, logsPage, message)
		}
	}
	for message := range documented {
		if logged[message] == "" {
			t.Errorf("%s has a message that no server logs: %s", logsPage, message)
		}
	}
	if len(logged) < 100 {
		t.Errorf("only %d messages were found", len(logged))
	}
}

// checkLibraryMessages: the messages in a section of the page are in the library of its title.
func checkLibraryMessages(t *testing.T, section string) {
	t.Helper()
	library, rows, _ := strings.Cut(section, "\n")
	messages := documentedMessage.FindAllStringSubmatch(rows, -1)
	if len(messages) == 0 {
		return // what is before the first library
	}
	var source strings.Builder
	for _, folder := range listFolders(t, "github.com/hashicorp/"+library) {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			source.Write(text)
		}
	}
	for _, m := range messages {
		for part := range strings.SplitSeq(m[1], "…") {
			if !strings.Contains(source.String(), strings.TrimSpace(part)) {
				t.Errorf("%s has a message that %s does not log: %s", logsPage, library, m[1])
			}
		}
	}
}

// loggedMessages maps the messages of a server, each behind its level, to a place in the code.
func loggedMessages(t *testing.T) map[string]string {
	t.Helper()
	logged := map[string]string{}
	for _, folder := range loggingFolders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			return readMessages(path, logged)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return logged
}

func readMessages(path string, logged map[string]string) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, 0)
	if err != nil {
		return err
	}
	name, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	name = filepath.ToSlash(name)
	ast.Inspect(file, func(node ast.Node) bool {
		call, isCall := node.(*ast.CallExpr)
		if !isCall || err != nil {
			return err == nil
		}
		level := logLevel(call)
		if level == "" || passedOn[name] {
			return true
		}
		where := fmt.Sprintf("%s:%d", name, files.Position(call.Pos()).Line)
		message, constant := constantText(call.Args[0])
		if !constant {
			err = fmt.Errorf("%s logs a message that is not constant: put what varies into a key", where)
			return false
		}
		logged[level+": "+message] = where
		return true
	})
	return err
}

// logLevel returns the level at which a call logs; empty if it does not log, or below info.
func logLevel(call *ast.CallExpr) string {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return ""
	}
	var receiver string
	switch x := method.X.(type) {
	case *ast.Ident:
		receiver = x.Name
	case *ast.SelectorExpr:
		receiver = x.Sel.Name
	}
	switch level := strings.ToLower(method.Sel.Name); {
	case !logReceiver.MatchString(receiver):
		return ""
	case level == "info", level == "warn", level == "error":
		return level
	}
	return ""
}

// constantText returns the text of literals and their concatenation.
func constantText(e ast.Expr) (string, bool) {
	switch x := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(x.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, ok := constantText(x.X)
		right, ok2 := constantText(x.Y)
		return left + right, ok && ok2 && x.Op == token.ADD
	}
	return "", false
}
