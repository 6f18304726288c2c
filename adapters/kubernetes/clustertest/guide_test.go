package clustertest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/servertest"
)

// guide is docs/with-kubernetes.md, and a shell in which its commands run as written.
type guide struct {
	text        string
	dir         string
	environment []string
	// patience is how long a script may take.
	patience time.Duration
}

// openGuide makes a folder that looks like the repository to the commands of the page. Commands write into it.
func openGuide(t *testing.T) *guide {
	t.Helper()
	text, err := os.ReadFile(root + "/docs/with-kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	g := &guide{text: string(text), dir: t.TempDir(), environment: servertest.Environment(), patience: patience}
	source, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(g.dir, "adapters", "kubernetes")
	if err := os.MkdirAll(own, 0o755); err != nil { //nolint:gosec // as in the repository
		t.Fatal(err)
	}
	if err := os.CopyFS(own, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	tools := filepath.Join(g.dir, ".tools")
	if err := os.Mkdir(tools, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, program := range map[string]string{"quorate": servertest.Quorate.Path(t), "kubectl": kubectl} {
		if err := os.Symlink(program, filepath.Join(tools, name)); err != nil {
			t.Fatal(err)
		}
	}
	g.set("PATH", tools+":"+os.Getenv("PATH"))
	return g
}

func (g *guide) set(name, value string) { g.environment = append(g.environment, name+"="+value) }

func (g *guide) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// edit replaces what an expression matches in a file, as the page tells its readers to do.
func (g *guide) edit(t *testing.T, name, expression, text string) {
	t.Helper()
	before, err := os.ReadFile(filepath.Join(g.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	after := regexp.MustCompile(expression).ReplaceAllLiteralString(string(before), text)
	if after == string(before) {
		t.Fatalf("%s has nothing that matches %s", name, expression)
	}
	g.write(t, name, after)
}

// try stops at the first command that fails.
func (g *guide) try(script string) (out, said string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), g.patience)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	command.Dir, command.Env = g.dir, g.environment
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	command.WaitDelay = time.Second // its children may keep the outputs open
	err = command.Run()
	return stdout.String(), stderr.String(), err
}

// run runs a script and returns its standard output. A warning is a failure: the page must not make readers wonder.
func (g *guide) run(t *testing.T, script string) string {
	t.Helper()
	out, said, err := g.try(script)
	if err != nil || strings.Contains(said, "Warning") {
		t.Fatalf("%s\n%v\n%s%s", script, err, out, said)
	}
	return out
}

// blocks removes the indentation of the blocks.
func (g *guide) blocks(language string) (list []string) {
	fenced := regexp.MustCompile("(?ms)^( *)```" + language + "\n(.*?)^ *```$")
	for _, m := range fenced.FindAllStringSubmatch(g.text, -1) {
		var block strings.Builder
		for line := range strings.Lines(m[2]) {
			block.WriteString(strings.TrimPrefix(line, m[1]))
		}
		list = append(list, block.String())
	}
	return list
}

// script returns the block of the page that begins with the text.
func (g *guide) script(t *testing.T, begin string) string {
	t.Helper()
	for _, block := range g.blocks("sh") {
		if strings.HasPrefix(block, begin) {
			return block
		}
	}
	t.Fatalf("no block of the page begins with %q", begin)
	return ""
}

// shown is what a block says of the output of its commands, as an expression: spaces stand for any, an ellipsis for
// anything, and the age of an event differs. A comment that is indented more continues the one before.
func shown(t *testing.T, block string) *regexp.Regexp {
	t.Helper()
	var words []string
	for line := range strings.Lines(block) {
		if comment, isComment := strings.CutPrefix(line, "#"); isComment {
			words = append(words, strings.Fields(comment)...)
		}
	}
	if len(words) == 0 {
		t.Fatalf("the block shows no output:\n%s", block)
	}
	expression := regexp.QuoteMeta(strings.Join(words, " "))
	for from, to := range map[string]string{"…": ".*", " 9s ": ` \S+( \(.*\))? `} {
		if !strings.Contains(expression, from) {
			t.Fatalf("%q is not in what the page shows: %s", from, expression)
		}
		expression = strings.ReplaceAll(expression, from, to)
	}
	return regexp.MustCompile(strings.ReplaceAll(expression, " ", " +"))
}

func (g *guide) reasons() (list []string) {
	for _, m := range regexp.MustCompile("(?m)^\\| `(Quota[A-Za-z]+)` \\|").FindAllStringSubmatch(g.text, -1) {
		list = append(list, m[1])
	}
	return list
}

// startGuarded starts a server with certificates that knows its callers by tokens, and makes the commands reach it as
// an administrator. Its authority is the file ca.crt.
func (g *guide) startGuarded(t *testing.T) (url string) {
	t.Helper()
	certs, ports := filepath.Join(g.dir, "certs"), servertest.FreePorts(t, 3)
	g.run(t, "quorate tls create certs --nodes n1 && cp certs/ca.crt .")
	startProcess(t, "quorate-page", servertest.Quorate.Path(t), "server", "run", "--id", "n1", "--data-dir", t.TempDir(),
		"--http-addr", ports[0], "--raft-addr", ports[1], "--gossip-addr", ports[2], "--bootstrap-expect", "1",
		"--log-level", "warn", "--tls-ca", filepath.Join(certs, "ca.crt"), "--tls-cert", filepath.Join(certs, "n1.crt"),
		"--tls-key", filepath.Join(certs, "n1.key"), "--tls-client-auth", "none",
		"--gossip-keys-file", filepath.Join(certs, "gossip.keys"),
		"--bootstrap-secret-file", filepath.Join(certs, "bootstrap.secret"))
	url = "https://" + ports[0]
	g.set("QUORATE_SERVER", url)
	g.set("QUORATE_TLS_CA", filepath.Join(certs, "ca.crt"))
	await(t, "the server of Quorate is ready", func() bool {
		_, _, err := g.try("quorate cluster wait --voters 1 --healthy --timeout 10s")
		return err == nil
	})
	g.run(t, "quorate token create --secret-file certs/bootstrap.secret --out admin.token")
	g.set("QUORATE_TOKEN_FILE", filepath.Join(g.dir, "admin.token"))
	g.run(t, "quorate access set watching && quorate access set guarded")
	return url
}

// manifest is the tree of the page with its bindings.
func (g *guide) manifest(t *testing.T) string {
	t.Helper()
	tree, bindings := g.blocks("yaml")[0], g.blocks("text")[0]
	const after = "    limits: {vcore: 200"
	if !strings.HasPrefix(tree, "trees:\n  prod:\n") || strings.Count(tree, after) != 1 {
		t.Fatalf("the first block of YAML is\n%s", tree)
	}
	var indented strings.Builder
	for line := range strings.Lines(bindings) {
		fmt.Fprint(&indented, "    ", line)
	}
	return strings.Replace(tree, after, indented.String()+after, 1)
}
