package client

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// tokenFileInterval is how long a token is used before its file is looked at again.
const tokenFileInterval = time.Second

// tokenFile follows the token in a file. Kubernetes and most tools replace such a file as a whole, often behind a
// symbolic link, so the file is identified by what the path leads to now.
type tokenFile struct {
	path string

	mu      sync.Mutex
	token   string
	read    os.FileInfo // of the file that the token is from
	checked time.Time   // when the file was last looked at
}

func openTokenFile(path string) (*tokenFile, error) {
	f := &tokenFile{path: path, checked: time.Now()}
	if err := f.readToken(); err != nil {
		return nil, fmt.Errorf("client: token file: %w", err)
	}
	return f, nil
}

func (f *tokenFile) current(context.Context) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.checked) >= tokenFileInterval {
		f.checked = now
		found, err := os.Stat(f.path)
		if err == nil && !isSameContent(found, f.read) {
			_ = f.readToken() // the last token stays in use, and the next call after a second tries again
		}
	}
	return f.token, nil
}

func isSameContent(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// readToken reads the token and notes from which file. Mu is held, or nothing else knows f.
func (f *tokenFile) readToken() error {
	file, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	info, err := file.Stat()
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(file, mostTokenBytes+3)) // a line break may follow the token
	if err != nil {
		return err
	}
	token := strings.TrimSpace(string(text))
	if err := checkToken(token); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	f.token, f.read = token, info
	return nil
}
