package recovery_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/server/recovery"
)

func newFolder(t *testing.T, store string) recovery.Folder {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "identity.json"), `{"id":"n1","cluster":"c","format":1,"store":"`+store+`"}`)
	f := recovery.Folder(dir)
	if err := f.WriteNote(recovery.Note{Recoveries: 2}); err != nil {
		t.Fatal(err)
	}
	return f
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func offerPath(f recovery.Folder) string { return filepath.Join(string(f), recovery.OfferFile) }

func wantError(t *testing.T, err error, says string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want an error that says %q", err, says)
	}
}

func TestAPreparedRecovery(t *testing.T) {
	f := newFolder(t, "s1")
	if _, offered, err := f.Offer(); offered || err != nil {
		t.Fatalf("nothing was prepared: %v, %v", offered, err)
	}
	first, _, err := f.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	secret, note, err := f.Prepare()
	if err != nil || note.Recoveries != 2 || len(secret) < 43 || secret == first {
		t.Fatalf("prepared %q, %+v, %v", secret, note, err)
	}
	offer, offered, err := f.Offer()
	if err != nil || !offered || offer != (recovery.Offer{Secret: sha256.Sum256([]byte(secret)), Recoveries: 2}) {
		t.Errorf("offers %+v, %v, %v", offer, offered, err)
	}
	text, err := os.ReadFile(offerPath(f))
	if info, failed := os.Stat(offerPath(f)); err != nil || failed != nil || info.Mode() != 0o600 {
		t.Errorf("the file is %v, %v, %v", info, err, failed)
	}
	if strings.Contains(string(text), secret) {
		t.Error("the secret is in the folder")
	}
	if removed, err := f.RemoveSpent(2); removed || err != nil {
		t.Errorf("an offer for the present count is removed: %v", err)
	}
	if removed, err := f.RemoveSpent(3); !removed || err != nil {
		t.Errorf("a spent offer stays: %v", err)
	}
	if _, offered, err := f.Offer(); offered || err != nil {
		t.Errorf("a removed offer is offered: %v", err)
	}
	if removed, err := f.RemoveSpent(3); removed || err != nil {
		t.Errorf("removed twice: %v", err)
	}
}

func TestOffersThatAreNotAccepted(t *testing.T) {
	prepared := func(t *testing.T, store string) (recovery.Folder, string) {
		t.Helper()
		f := newFolder(t, store)
		if _, _, err := f.Prepare(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(offerPath(f))
		if err != nil {
			t.Fatal(err)
		}
		return f, string(text)
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, f recovery.Folder, text string)
		says   string
	}{
		"world-readable": {func(t *testing.T, f recovery.Folder, _ string) {
			t.Helper()
			if err := os.Chmod(offerPath(f), 0o604); err != nil {
				t.Fatal(err)
			}
		}, "chmod 0600"},
		"of a group": {func(t *testing.T, f recovery.Folder, _ string) {
			t.Helper()
			if err := os.Chmod(offerPath(f), 0o620); err != nil {
				t.Fatal(err)
			}
		}, "chmod 0600"},
		"a link": {func(t *testing.T, f recovery.Folder, text string) {
			t.Helper()
			elsewhere := filepath.Join(t.TempDir(), "offer")
			write(t, elsewhere, text)
			if err := os.Remove(offerPath(f)); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(elsewhere, offerPath(f)); err != nil {
				t.Fatal(err)
			}
		}, "symbolic link"},
		"copied from another folder": {func(t *testing.T, f recovery.Folder, _ string) {
			t.Helper()
			_, other := prepared(t, "s2")
			write(t, offerPath(f), other)
		}, "another data folder"},
		"of no folder": {func(t *testing.T, f recovery.Folder, text string) {
			t.Helper()
			write(t, offerPath(f), strings.Replace(text, "s1", "", 1))
		}, "another data folder"},
		"cut": {func(t *testing.T, f recovery.Folder, text string) {
			t.Helper()
			write(t, offerPath(f), text[:len(text)/2])
		}, "is damaged"},
		"with a short hash": {func(t *testing.T, f recovery.Folder, text string) {
			t.Helper()
			write(t, offerPath(f), text[:len(text)-5]+text[len(text)-3:])
		}, "SHA-256"},
		"too long": {func(t *testing.T, f recovery.Folder, text string) {
			t.Helper()
			write(t, offerPath(f), text+strings.Repeat(" ", 5000))
		}, "4096"},
		"a folder": {func(t *testing.T, f recovery.Folder, _ string) {
			t.Helper()
			if err := errors.Join(os.Remove(offerPath(f)), os.Mkdir(offerPath(f), 0o700)); err != nil {
				t.Fatal(err)
			}
		}, "not a file"},
	} {
		t.Run(name, func(t *testing.T) {
			f, text := prepared(t, "s1")
			c.change(t, f, text)
			offer, offered, err := f.Offer()
			if offered || offer != (recovery.Offer{}) {
				t.Errorf("offers %+v", offer)
			}
			wantError(t, err, c.says)
		})
	}
}

func TestAnOfferOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file to another user")
	}
	f := newFolder(t, "s1")
	if _, _, err := f.Prepare(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(offerPath(f), 12345, 12345); err != nil {
		t.Fatal(err)
	}
	_, offered, err := f.Offer()
	if offered {
		t.Error("it is accepted")
	}
	wantError(t, err, "belongs to the user with the id 12345")
}

func TestFoldersInWhichNothingIsPrepared(t *testing.T) {
	_, _, err := recovery.Folder(t.TempDir()).Prepare()
	wantError(t, err, "not the data folder of a server")
	f := newFolder(t, "s1")
	if err := os.Remove(filepath.Join(string(f), recovery.NoteFile)); err != nil {
		t.Fatal(err)
	}
	_, _, err = f.Prepare()
	wantError(t, err, "start the server")
	write(t, filepath.Join(string(f), recovery.NoteFile), "?")
	_, _, err = f.Prepare()
	wantError(t, err, "is damaged")
}

// TestTheWatcher: a recovery is said once, with its member and index, also after a restart.
func TestTheWatcher(t *testing.T) {
	f := newFolder(t, "s1")
	if _, _, err := f.Prepare(); err != nil {
		t.Fatal(err)
	}
	book, refused := access.Load(access.State{
		Recoveries: 3, Recovery: access.Recovery{Member: "n7", Account: "boss", Index: 4711, Wall: 1_800_000_000_000},
	})
	if refused != nil {
		t.Fatal(refused)
	}
	watch := func(book *access.Book) string {
		var log bytes.Buffer
		note, err := f.Begin()
		if err != nil {
			t.Fatal(err)
		}
		w := &recovery.Watcher{
			Folder: f, Book: func() *access.Book { return book }, Log: hclog.New(&hclog.LoggerOptions{Output: &log}),
			Note: note,
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		w.Run(ctx)
		return log.String()
	}
	if said := watch(access.NewBook(access.Open)); said != "" {
		t.Errorf("a book that is behind: %s", said)
	}
	if _, offered, err := f.Offer(); !offered || err != nil {
		t.Errorf("an offer that is not spent is gone: %v", err)
	}
	said := watch(book)
	for _, part := range []string{"[WARN]", "ACCESS WAS RECOVERED", "member=n7", "account=boss", "index=4711"} {
		if !strings.Contains(said, part) {
			t.Errorf("the log does not say %s: %s", part, said)
		}
	}
	if _, offered, err := f.Offer(); offered || err != nil {
		t.Errorf("a spent offer stays: %v", err)
	}
	if note, err := f.ReadNote(); err != nil || note.Recoveries != 3 {
		t.Errorf("noted %+v, %v", note, err)
	}
	if said := watch(book); said != "" {
		t.Errorf("said again: %s", said)
	}
}

// TestFoldersThatAreClosed: a server with a new folder is closed for good, one of an earlier version once its cluster
// was guarded.
func TestFoldersThatAreClosed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	fresh := recovery.Folder(dir)
	for range 2 {
		if note, err := fresh.Begin(); err != nil || !note.Closed {
			t.Errorf("a new folder has %+v, %v", note, err)
		}
		write(t, filepath.Join(dir, "identity.json"), `{"id":"n1","cluster":"c","format":1,"store":"s"}`)
	}
	used := newFolder(t, "s1")
	if err := os.Remove(filepath.Join(string(used), recovery.NoteFile)); err != nil {
		t.Fatal(err)
	}
	note, err := used.Begin()
	if err != nil || note.Closed {
		t.Errorf("a folder of an earlier version has %+v, %v", note, err)
	}
	for _, mode := range []access.Mode{access.Watching, access.Guarded} {
		w := &recovery.Watcher{
			Folder: used, Book: func() *access.Book { return access.NewBook(mode) }, Log: hclog.NewNullLogger(), Note: note,
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		w.Run(ctx)
		cancel()
		if note, err = used.Begin(); err != nil || note.Closed != (mode == access.Guarded) ||
			note.Guarded != note.Closed {
			t.Errorf("of a cluster that is %s: %+v, %v", mode, note, err)
		}
	}
	write(t, filepath.Join(dir, recovery.NoteFile), "?")
	if _, err := fresh.Begin(); err == nil {
		t.Error("a damaged note is accepted")
	}
}
