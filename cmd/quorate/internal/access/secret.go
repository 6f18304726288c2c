package access

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/proto"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// secretFile is a file for a secret that servers show once. It is opened before the secret is asked for, so that a
// secret is not lost because its file cannot be made.
type secretFile struct {
	file *os.File
	path string // where the file is in the end
}

// openSecretFile makes a file that only its owner can read; nil without a path. Unless it may replace one, a file that
// exists is an error. A file that is replaced stays whole until the new one is.
func openSecretFile(path string, replace bool) (*secretFile, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // the secret is printed
	}
	var file *os.File
	var err error
	if replace {
		file, err = os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // its mode is 0600
	} else {
		file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("--out: %s exists and is not overwritten: choose another file, or move it away", path)
	}
	if err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	return &secretFile{file, path}, nil
}

// write writes the secret on one line and closes the file.
func (f *secretFile) write(secret string) error {
	_, err := f.file.WriteString(secret + "\n")
	err = errors.Join(err, f.file.Sync(), f.file.Close())
	if err == nil && f.file.Name() != f.path {
		err = os.Rename(f.file.Name(), f.path)
	}
	return err
}

func (f *secretFile) discard() {
	if f != nil {
		_ = f.file.Close()
		_ = os.Remove(f.file.Name())
	}
}

// tokenAnswer is an answer with a new token.
type tokenAnswer interface {
	proto.Message
	GetSecret() string
	GetToken() *adminv1.Token
}

// makeToken writes a new token into the file of --out, or to standard output, alone on a line.
func makeToken[A tokenAnswer](c *cli.Env, out string, replace bool, call func() (A, error)) (answer A, err error) {
	file, err := openSecretFile(out, replace)
	if err != nil {
		return answer, err
	}
	answer, err = call()
	if err != nil {
		file.discard()
		return answer, err
	}
	if file == nil {
		c.Messagef("%s", tokenText(answer.GetToken()))
		return answer, c.Print(answer, lineOf("%s", answer.GetSecret()))
	}
	if err := file.write(answer.GetSecret()); err != nil {
		file.discard()
		return answer, fmt.Errorf("%s was made, but could not be kept: %w; revoke it: quorate token delete %s",
			tokenText(answer.GetToken()), err, answer.GetToken().GetId())
	}
	c.Messagef("%s: %s", out, tokenText(answer.GetToken()))
	if c.IsTable() {
		return answer, nil
	}
	clearSecret(answer)
	return answer, c.Print(answer, lineOf(""))
}

// clearSecret is for an answer that is printed although the secret is in a file.
func clearSecret(answer proto.Message) {
	content := answer.ProtoReflect()
	content.Clear(content.Descriptor().Fields().ByName("secret"))
}

func tokenText(t *adminv1.Token) string {
	text := fmt.Sprintf("token %s of account %s", t.GetId(), t.GetAccount())
	if t.GetEndsAt() != nil {
		text += ", which ends at " + cli.FormatTime(t.GetEndsAt())
	}
	return text
}

// mostSecretBytes is the most bytes of a file with a bootstrap secret.
const mostSecretBytes = 128

// readSecretFile expects the secret alone on one line. Errors do not repeat it.
func readSecretFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", cli.Usagef("--secret-file: %v", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(file, mostSecretBytes+3))
	if err != nil {
		return "", cli.Usagef("--secret-file: %v", err)
	}
	secret := strings.TrimSpace(string(text))
	switch {
	case secret == "":
		return "", cli.Usagef("--secret-file: %s is empty", path)
	case len(secret) > mostSecretBytes || strings.ContainsAny(secret, " \t\r\n"):
		return "", cli.Usagef("--secret-file: %s is not a secret: it has one line of at most %d characters", path,
			mostSecretBytes)
	}
	return secret, nil
}
