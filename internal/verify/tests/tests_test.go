package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// header begins a test file that imports package verify.
const header = "package x\n\nimport \"" + verifyPath + "\"\n\n"

// TestWaysToVerify: each source has the tests TestMore, which reaches package verify, and TestSame, which does not.
func TestWaysToVerify(t *testing.T) {
	for name, source := range map[string]string{
		"directly":        "func TestMore(t *testing.T) { verify.Only(t) }",
		"in a subtest":    `func TestMore(t *testing.T) { t.Run("a", func(t *testing.T) { verify.Only(t) }) }`,
		"over helpers":    "func TestMore() { a() }\nfunc a() { b() }\nfunc b() int { return verify.Scale(1, 2) }",
		"over a variable": "var n = verify.Scale(1, 2)\nfunc TestMore() { print(n) }",
		"over a table":    "var table = []func(){a}\nfunc a() { verify.Enabled() }\nfunc TestMore() { table[0]() }",
		"over a constant": "const (\n n = 1\n m\n)\ntype s [m]int\nfunc (s) a() { verify.Enabled() }\nfunc TestMore(x s) { x.a() }",
		"over a method":   "type m struct{}\nfunc (*m) a() { verify.Enabled() }\nfunc TestMore() { new(m).a() }",
		"over reflection": "type m[T any] struct{}\nfunc (*m[T]) A() { verify.Enabled() }\nfunc TestMore() { call(m[int]{}) }",
		"over an interface": "type i interface{ a() }\ntype m struct{}\nfunc (m) a() { verify.Enabled() }\n" +
			"func TestMore(x i) { x.a() }",
		"over embedding": "type m struct{}\nfunc (m) A() { verify.Enabled() }\ntype n struct{ m }\n" +
			"func (n) B() {}\nfunc TestMore() { call(n{}) }",
	} {
		t.Run(name, func(t *testing.T) {
			expectTests(t, header+source+"\nfunc TestSame() { other() }\nfunc other() {}\n", "TestMore")
		})
	}
}

func TestCodeThatRunsBeforeEveryTest(t *testing.T) {
	for _, source := range []string{
		"func TestMain(m *testing.M) { a() }", "func init() { a() }", "var _ = a()",
	} {
		expectTests(t, header+source+"\nfunc a() int { return verify.Scale(1, 2) }\n"+
			"func TestA() {}\nfunc FuzzB() {}\nfunc ExampleC() {}\nfunc BenchmarkD() {}\nfunc (x) TestE() {}\n",
			"ExampleC", "FuzzB", "TestA")
	}
}

func TestImportUnderAnotherName(t *testing.T) {
	renamed := strings.Replace(header, `import "`, `import v "`, 1)
	expectTests(t, renamed+"func TestMore() { v.Enabled() }\nfunc TestSame(verify y) { verify.Enabled() }\n", "TestMore")
}

func expectTests(t *testing.T, source string, want ...string) {
	t.Helper()
	p, err := parse(folderWith(t, source))
	if err != nil {
		t.Fatal(err)
	}
	if got := p.exhaustiveTests(); !slices.Equal(got, want) {
		t.Errorf("the tests are %v, want %v, of\n%s", got, want, source)
	}
}

func folderWith(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x_test.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestPatternOfFolders(t *testing.T) {
	first := folderWith(t, header+"func TestC() { verify.Enabled() }\nfunc TestA() { verify.Enabled() }\n")
	second := folderWith(t, header+"func TestC() { verify.Enabled() }\nfunc TestB() { verify.Enabled() }\n")
	if got, err := patternOf([]string{first, second}); err != nil || got != "^(TestA|TestB|TestC)$" {
		t.Errorf("the pattern is %q, error %v", got, err)
	}
}

// TestNoPattern: an empty pattern would run all tests, and one that lacks a folder would run none of it.
func TestNoPattern(t *testing.T) {
	none := folderWith(t, header+"func helper() { verify.Enabled() }\nfunc TestSame() {}\n")
	dot := folderWith(t, strings.Replace(header, `import "`, `import . "`, 1)+"func TestMore() { Enabled() }\n")
	broken := folderWith(t, "package")
	for want, folders := range map[string][]string{
		"no folder is given":        nil,
		"no test calls":             {none},
		"as a dot":                  {dot},
		"expected 'IDENT'":          {broken},
		"missing: no test calls":    {"missing"},
		"[-]]: syntax error in pat": {"[-]]"},
	} {
		if got, err := patternOf(folders); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the pattern of %q is %q, error %v, want %q", folders, got, err, want)
		}
	}
}
