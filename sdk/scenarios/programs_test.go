package scenarios

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/verify"
)

// programs is the folder of programs that use no client of ours.
const programs = "../../examples/programs"

// TestProgramInCurl and the two after it run examples/programs, as its README says, against real servers: each program
// is denied, waits, is granted, renews, releases and lists, and prints the same.
func TestProgramInCurl(t *testing.T) {
	requireTools(t, "curl", "jq")
	c := startCluster(t)
	assertPrinted(t, "curl", mustRun(t, ".", programs+"/queue.sh", c.URLs[0], "lab", "physics"))
}

func TestProgramInPython(t *testing.T) {
	requireTools(t, "protoc", "grpc_python_plugin")
	requirePython(t, "from grpc import StatusCode; import google.protobuf")
	testProgramOfReadme(t, "python", "queue.py")
}

func TestProgramInJava(t *testing.T) {
	verify.Only(t) // compiles the messages, for half a minute
	requireTools(t, "protoc", "grpc_java_plugin", "javac")
	testProgramOfReadme(t, "java", "Queue.java")
}

// testProgramOfReadme runs the commands with which the README generates code for a program and starts it, in a folder
// that looks like the root of a clone.
func testProgramOfReadme(t *testing.T, language, file string) {
	t.Helper()
	c := startCluster(t)
	folder := t.TempDir()
	for _, name := range []string{"proto", "examples"} {
		target, err := filepath.Abs("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	script := readmeCommands(t, file)
	address := strings.TrimPrefix(c.URLs[0], "http://")
	for old, replacement := range map[string]string{"127.0.0.1:7101": address, " python3 ": " " + debian + " "} {
		script = strings.ReplaceAll(script, old, replacement)
	}
	assertPrinted(t, language, mustRun(t, folder, "bash", "-euc", script))
}

// readmeCommands returns the block of the README that names a file.
func readmeCommands(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(programs + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(block[1], "/"+file) {
			return block[1]
		}
	}
	t.Fatalf("the README has no commands for %s", file)
	return ""
}

// assertPrinted compares what a program prints; libraries may print warnings between the lines.
func assertPrinted(t *testing.T, name, out string) {
	t.Helper()
	want := strings.ReplaceAll(`granted NAME-1
denied: it may fit later
  lab:physics cores: limit 10, used 6, requested 6
waits at position 1
renewed for 60 s
released NAME-1
granted NAME-2
granted NAME-3
refused: FENCE_MISMATCH
page 1: NAME-2 ALLOCATION_STATE_HELD
page 2: NAME-3 ALLOCATION_STATE_HELD
released NAME-2 NAME-3
`, "NAME", name)
	expected := strings.Split(want, "\n")
	for line := range strings.Lines(out) {
		if len(expected) > 1 && strings.TrimSuffix(line, "\n") == expected[0] {
			expected = expected[1:]
		}
	}
	if len(expected) > 1 {
		t.Errorf("the program does not print %q in its place:\n%s\nwant\n%s", expected[0], out, want)
	}
}
