package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Lengths of a secret in bytes, as the Standard Webhooks specification wants them, and the most secrets of a file.
const (
	minSecret  = 24
	maxSecret  = 64
	maxSecrets = 3
)

// secretPrefix stands in front of secrets by convention.
const secretPrefix = "whsec_"

// readSecrets returns the secrets in the file of a name: one for each line, so that a secret can be replaced while
// receivers know either. It reads the file at each delivery, so that a new one takes effect at once. It refuses a file
// that other users than its owner can use.
func readSecrets(dir, name string) ([][]byte, error) {
	if dir == "" {
		return nil, errors.New("this server has no secrets: name their folder in its setting webhook-secrets-dir")
	}
	file, err := os.Open(filepath.Join(dir, filepath.Base(name)))
	if err != nil {
		return nil, fmt.Errorf("the secret %s cannot be read on this server: %w", name, errors.Unwrap(err))
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode(); !mode.IsRegular() || mode.Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the secret %s (mode %04o) is not a file of its owner alone: chmod 0600", name, mode.Perm())
	}
	text, err := io.ReadAll(io.LimitReader(file, 4096))
	if err != nil {
		return nil, err
	}
	return parseSecrets(name, string(text))
}

func parseSecrets(name, text string) ([][]byte, error) {
	var list [][]byte
	for line := range strings.FieldsSeq(text) {
		secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(line, secretPrefix))
		if err != nil || len(secret) < minSecret || len(secret) > maxSecret || len(list) == maxSecrets {
			return nil, fmt.Errorf("the secret %s is not one to %d lines of %s and the Base64 of %d to %d bytes; make one with "+
				"\"echo %s$(openssl rand -base64 32)\"", name, maxSecrets, secretPrefix, minSecret, maxSecret, secretPrefix)
		}
		list = append(list, secret)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("the file of the secret %s is empty", name)
	}
	return list, nil
}

// signMessage signs a message as Standard Webhooks says: HMAC-SHA-256 over id, time in seconds and body, once with each
// secret.
func signMessage(secrets [][]byte, id string, seconds int64, body []byte) string {
	var list []string
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(id + "." + strconv.FormatInt(seconds, 10) + "."))
		mac.Write(body)
		list = append(list, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(list, " ")
}
