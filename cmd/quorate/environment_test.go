package main_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/server"
)

// TestUnknownVariables: a name that begins as those of Quorate and is none is a warning with the nearest name; those of
// Kubernetes are none.
func TestUnknownVariables(t *testing.T) {
	for pair, want := range map[string]string{
		"QUORATE_DATA_DIR=d":                                "did you mean QUORATE_SERVER_DATA_DIR?",
		"QUORATE_TLS_CLIENT_AUTH=x":                         "did you mean QUORATE_SERVER_TLS_CLIENT_AUTH?",
		"QUORATE_SERVER_DATADIR=d":                          "did you mean QUORATE_SERVER_DATA_DIR?",
		"QUORATE_DATADIR=d":                                 "did you mean QUORATE_SERVER_DATA_DIR?",
		"QUORATE_SERVER_TOKEN_FILE=t":                       "did you mean QUORATE_TOKEN_FILE?",
		"QUORATE_TOKENFILE=t":                               "did you mean QUORATE_TOKEN_FILE?",
		"QUORATE_SEVER=http://a":                            "did you mean QUORATE_SERVER?",
		"QUORATE_HTTP_PORT=7101":                            "has no effect",
		"QUORATE_UTTERLY_ELSE=":                             "has a table",
		"QUORATE_SERVER=http://a":                           "",
		"QUORATE_SERVER_TLS_CA=a":                           "",
		"QUORATE_TLS_CA=a":                                  "",
		"QUORATE_VERIFY=1":                                  "",
		"QUORATEX=1":                                        "",
		"QUORATE_SERVICE_HOST=10.0.0.1":                     "",
		"QUORATE_SERVICE_PORT=7101":                         "",
		"QUORATE_SERVICE_PORT_HTTP_API=7101":                "",
		"QUORATE_PORT=tcp://10.0.0.1:7101":                  "",
		"QUORATE_PORT_7101_TCP=tcp://10.0.0.1:7101":         "",
		"QUORATE_PORT_7101_TCP_ADDR=10.0.0.1":               "",
		"QUORATE_XYZ_SERVICE_HOST=10.0.0.1":                 "",
		"QUORATE_SERVER_PORT=tcp://10.0.0.1:7101":           "",
		"QUORATE_SERVER_PORT_7301_UDP_PROTO=udp":            "",
		"QUORATE_XYZ_PORT=udp://[fd00::1]:7101":             "",
		"QUORATE_XYZ_PORT_7101_SCTP=sctp://10.0.0.1:7101":   "",
		"QUORATE_HEADLESS_SERVICE_PORT_GOSSIP_UDP=7301":     "",
		"QUORATE_HEADLESS_PORT_7201_TCP=tcp://10.0.0.1:721": "",
	} {
		var said strings.Builder
		env := &cli.Env{ErrOut: &said}
		env.WarnUnknownVariables([]string{"PATH=/bin", pair, pair}, server.EnvironmentVariables())
		if want == "" && said.Len() > 0 || !strings.Contains(said.String(), want) || strings.Count(said.String(), "\n") > 1 {
			t.Errorf("%s: %q, want %q", pair, said.String(), want)
		}
	}
}

// TestServersAndCommandsShareNoVariable: no name has two meanings.
func TestServersAndCommandsShareNoVariable(t *testing.T) {
	for _, name := range server.EnvironmentVariables() {
		if !strings.HasPrefix(name, cli.ServerPrefix) || slices.Contains(cli.ClientVariables(), name) {
			t.Errorf("%s is a setting of a server and also one of commands", name)
		}
	}
	for _, name := range cli.ClientVariables() {
		if strings.HasPrefix(name, cli.ServerPrefix) {
			t.Errorf("%s of commands looks like a setting of a server", name)
		}
	}
}

// TestEveryVariableOfTheRepositoryIsKnown: what files of this repository read, set or explain is known, so that none of
// it leads to a warning.
func TestEveryVariableOfTheRepositoryIsKnown(t *testing.T) {
	known := append(cli.ClientVariables(), server.EnvironmentVariables()...)
	page := readPage(t, "docs", "command-line.md")
	for _, name := range cli.ClientVariables()[:10] {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/command-line.md does not explain %s", name)
		}
	}
	names, found := regexp.MustCompile(`\bQUORATE_[A-Z0-9_]*[A-Z0-9]\b`), map[string]bool{}
	skipped := []string{".git", ".bin", ".cache", "node_modules", "adr", "bin", "dist"}
	// These name unknown variables too.
	explains := []string{
		"CHANGELOG-0.md", "environment_test.go", "environment.go", "command-line.md", "server_e2e_test.go",
	}
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(skipped, entry.Name()):
			return filepath.SkipDir
		case !entry.Type().IsRegular() || slices.Contains(explains, entry.Name()):
			return nil
		}
		if info, err := entry.Info(); err != nil || info.Size() > 1<<20 {
			return err
		}
		text, err := os.ReadFile(path)
		for _, name := range names.FindAllString(string(text), -1) {
			found[name] = true
			if !slices.Contains(known, name) {
				t.Errorf("%s has %s, which is not known", path, name)
			}
		}
		return err
	})
	if err != nil || len(found) < 40 {
		t.Errorf("%d names are found: %v", len(found), err)
	}
}
