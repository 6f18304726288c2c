package scenarios

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/servertest"
	"github.com/quorate/quorate/internal/verify"
)

// debian is the Python that Debian's packages of grpcio and protobuf are for.
const debian = "/usr/bin/python3"

// grpcLevels is the depth of the tree in which clients of gRPC are denied.
const grpcLevels = 7

// TestDenialsReachPython and TestDenialsReachJava: the decision arrives through the gRPC libraries of these languages,
// which drop a trailer of more than 8 KiB, however many limits are in the way, and from each server.
func TestDenialsReachPython(t *testing.T) {
	requirePython(t, "from grpc import StatusCode") // the folder grpc here is a package of that name, too
	testDenialsOverGRPC(t, debian, "grpc/deny.py")
}

// requirePython requires that Debian's Python can execute an import.
func requirePython(t *testing.T, imports string) {
	t.Helper()
	requireTools(t, debian)
	if out, status := runIn(t, ".", nil, debian, "-c", imports); status != 0 {
		if os.Getenv("QUORATE_SDKS") == "require" {
			t.Fatalf("make sdks installs grpcio and protobuf: %s", out)
		}
		t.Skipf("%s fails on this machine: make sdks installs grpcio and protobuf", imports)
	}
}

func TestDenialsReachJava(t *testing.T) {
	verify.Only(t) // half a minute
	requireTools(t, "javac")
	jars, classes := "/usr/share/java/*", t.TempDir()
	mustRun(t, ".", "javac", "-cp", jars, "-d", classes, "grpc/Deny.java")
	testDenialsOverGRPC(t, "java", "-cp", classes+":"+jars, "Deny")
}

func testDenialsOverGRPC(t *testing.T, program ...string) {
	t.Helper()
	c := servertest.StartCluster(t, servertest.Settings{Patience: patience})
	manifest := filepath.Join(t.TempDir(), "deep.yaml")
	if err := os.WriteFile(manifest, []byte(deepTree()), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Run(t, "apply", "-f", manifest)
	for _, s := range c.Servers {
		out := mustRun(t, ".", append(program, strings.TrimPrefix(s.URL(), "http://"), deepestNode())...)
		var lines []string
		for line := range strings.Lines(out) { // the libraries may print warnings between them
			if code := "RESOURCE_EXHAUSTED "; strings.HasPrefix(line, code) {
				lines = append(lines, strings.TrimSpace(strings.TrimPrefix(line, code)))
			}
		}
		if len(lines) != 3 {
			t.Fatalf("not three denials:\n%s", out)
		}
		for i, resources := range []int{1, 3, 8} {
			assertDenied(t, lines[i], resources)
		}
	}
}

// deepTree limits 8 resources to 1 at each of its levels.
func deepTree() string {
	limits := func(indent string) string {
		lines := indent + "limits:\n"
		for i := range 8 {
			lines += fmt.Sprintf("%s  res%d: 1\n", indent, i)
		}
		return lines
	}
	text, indent := "trees:\n  deep:\n    resources:\n", "    "
	for i := range 8 {
		text += fmt.Sprintf("      res%d: {unit: count}\n", i)
	}
	text += limits(indent)
	for level := 1; level < grpcLevels; level++ {
		text += fmt.Sprintf("%snodes:\n%s  level%d:\n", indent, indent, level)
		indent += "    "
		text += limits(indent)
	}
	return text
}

func deepestNode() string {
	path := make([]string, 0, grpcLevels)
	for level := 1; level < grpcLevels; level++ {
		path = append(path, fmt.Sprintf("level%d", level))
	}
	return strings.Join(path, "/")
}

// assertDenied reads the status of a denial.
func assertDenied(t *testing.T, text string, resources int) {
	t.Helper()
	encoded, broken := hex.DecodeString(text)
	var sent status.Status
	if err := proto.Unmarshal(encoded, &sent); err != nil || broken != nil {
		t.Fatalf("%d resources: %d bytes of details (%v, %v)", resources, len(encoded), err, broken)
	}
	var d quoratev1.Decision
	if len(sent.GetDetails()) != 1 || sent.GetDetails()[0].UnmarshalTo(&d) != nil {
		t.Fatalf("%d resources: the details are %v", resources, sent.GetDetails())
	}
	named := map[string]bool{}
	for _, v := range d.GetViolations() {
		named[v.GetResource()] = true
	}
	if len(named) != resources || !d.GetNeverFits() || len(encoded) > 4<<10 ||
		len(d.GetViolations())+int(d.GetOtherViolations()) != resources*grpcLevels {
		t.Errorf("%d resources: %d bytes, %d violations of %v and %d others, never fits: %v", resources, len(encoded),
			len(d.GetViolations()), named, d.GetOtherViolations(), d.GetNeverFits())
	}
}
