package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// TestTokensOfTheEnvironment: a command presents the token of the flag, or else of one variable, and never guesses
// between two variables.
func TestTokensOfTheEnvironment(t *testing.T) {
	_, server := startFake(t)
	for name, tc := range map[string]struct {
		token, file string // QUORATE_TOKEN and QUORATE_TOKEN_FILE
		args        string
		code        int
		says        string
	}{
		"none":                {"", "", "", 0, "anonymous"},
		"a variable":          {fakeToken + "\n", "", "", 0, "account/admin"},
		"a file":              {"", "testdata/admin.token", "", 0, "account/admin"},
		"the flag is first":   {"", "nowhere", "--token-file testdata/admin.token", 0, "account/admin"},
		"both variables":      {fakeToken, "testdata/admin.token", "", 2, "unset QUORATE_TOKEN"},
		"a flag and a token":  {"bad", "", "--token-file testdata/admin.token", 0, "account/admin"},
		"a malformed token":   {fakeToken + " x", "", "", 4, "blanks"},
		"a token that is bad": {"bad", "", "", 4, "the token is from:        $QUORATE_TOKEN"},
		"an empty file":       {"", os.DevNull, "", 2, "empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("QUORATE_TOKEN", tc.token)
			t.Setenv("QUORATE_TOKEN_FILE", tc.file)
			code, stdout, stderr := runQuorate(server, "", append([]string{"access", "whoami"}, strings.Fields(tc.args)...)...)
			if code != tc.code || !strings.Contains(stdout+stderr, tc.says) || strings.Contains(stderr, fakeToken) {
				t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
			}
			if code, _, stderr := runQuorate(server, "", "role", "list"); code != cli.ExitOK {
				t.Errorf("a command that asks no server looks at the token: %d %s", code, stderr)
			}
		})
	}
}

// TestSecretsGoToNewFiles: a token is in the file of --out, readable by its owner only, and nowhere else.
func TestSecretsGoToNewFiles(t *testing.T) {
	_, server := startFake(t)
	for name, tc := range map[string]struct {
		args, secret string
		replaces     bool
	}{
		"bootstrap": {"token create --secret-file testdata/bootstrap.secret", "qrt_first", false},
		"add":       {"token create sim-ci", "qrt_new-secret", false},
		"rotate":    {"token rotate", "qrt_next-secret", true},
	} {
		for _, format := range cli.OutputFormats {
			t.Run(name+" "+format, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "a.token")
				run := func() (int, string) {
					code, stdout, stderr := runQuorate(server, "", append(strings.Fields(tc.args), "-o", format, "--out", path)...)
					if strings.Contains(stdout+stderr, "qrt_") || format == cli.OutputTable && stdout != "" {
						t.Errorf("the secret was printed:\n%s%s", stdout, stderr)
					}
					return code, stderr
				}
				if code, stderr := run(); code != cli.ExitOK || !strings.Contains(stderr, path+": token 0123456789abc") {
					t.Fatalf("exit code %d: %s", code, stderr)
				}
				checkSecretFile(t, path, tc.secret)
				if err := os.WriteFile(path, []byte("precious\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				code, stderr := run()
				if tc.replaces {
					checkSecretFile(t, path, tc.secret)
				} else if code != cli.ExitFailure || !strings.Contains(stderr, "not overwritten") {
					t.Errorf("a file was overwritten: %d %s", code, stderr)
				}
				if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
					t.Errorf("left %v, %v", left, err)
				}
			})
		}
	}
}

func checkSecretFile(t *testing.T, path, secret string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil || string(text) != secret+"\n" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v", info.Mode())
	}
}

// TestFailedTokensLeaveNoFile: nothing is left, and no file is lost, if the servers make no token.
func TestFailedTokensLeaveNoFile(t *testing.T) {
	_, server := startFake(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "a.token")
	if code, _, _ := runQuorate(server, "", "token", "create", "full", "--out", path); code != cli.ExitDenied {
		t.Errorf("exit code %d", code)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if err := os.WriteFile(path, []byte("precious\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	closed := "http://127.0.0.1:1"
	code, _, _ := runQuorate(closed, "", "token", "rotate", "--out", path, "--timeout", "100ms")
	text, err := os.ReadFile(path)
	if left, _ := os.ReadDir(dir); code != cli.ExitUnavailable || string(text) != "precious\n" || len(left) != 1 {
		t.Errorf("exit code %d; the file has %q, %v; left %v", code, text, err, left)
	}
}

// TestSpansBeginNow: the ends of refusals may be spans.
func TestSpansBeginNow(t *testing.T) {
	f, server := startFake(t)
	before := time.Now().Truncate(time.Second)
	code, _, stderr := runQuorate(server, "", "refusal", "create", "user", "corp/ann", "--until", "30d", "--reason", "r")
	r, ok := f.lastRequest(t).(*adminv1.RefuseCredentialRequest)
	until := r.GetRefused().GetEndsAt().AsTime()
	if code != cli.ExitOK || !ok || until.Before(before.AddDate(0, 0, 30)) || until.After(time.Now().AddDate(0, 0, 30)) {
		t.Errorf("exit code %d, until %v: %s", code, until, stderr)
	}
}

// TestGuardIsNotForStrangers: a caller that would lock itself out changes nothing.
func TestGuardIsNotForStrangers(t *testing.T) {
	f, server := startFake(t)
	code, _, stderr := runQuorate(server, "", "access", "set", "guarded")
	if code != cli.ExitDenied || !strings.Contains(stderr, "hindrance") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	question := &quoratev1.CanIRequest{Questions: []*quoratev1.AccessQuestion{{
		Verb: "access.manage",
	}}}
	if got := f.lastRequest(t); !proto.Equal(got, question) {
		t.Errorf("the last request is %v", got)
	}
}

// TestInitMakesABootstrapSecret: its file is what bootstrap reads, belongs to its owner only, and is not overwritten.
func TestInitMakesABootstrapSecret(t *testing.T) {
	f, server := startFake(t)
	dir := filepath.Join(t.TempDir(), "certs")
	path := filepath.Join(dir, "bootstrap.secret")
	code, stdout, stderr := runQuorate(server, "", "tls", "create", dir, "--nodes", "n1")
	if code != cli.ExitOK || !strings.Contains(stderr, path+": the secret for the first token") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	secret, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	checkSecretFile(t, path, strings.TrimSpace(string(secret)))
	if strings.Contains(stdout+stderr, strings.TrimSpace(string(secret))) {
		t.Error("the secret was printed")
	}
	_, _, _ = runQuorate(server, "", "token", "create", "--secret-file", path)
	if r, ok := f.lastRequest(t).(*adminv1.BootstrapRequest); !ok || r.GetSecret()+"\n" != string(secret) {
		t.Errorf("bootstrap sent another secret")
	}
}
