package recovery

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/quorate/quorate/cluster/atomicfile"
	"github.com/quorate/quorate/cluster/host"
)

// Names of the files in a data folder.
const (
	NoteFile  = "access.json"
	OfferFile = "access-recovery.json"
)

// maxFile bounds the bytes of each file.
const maxFile = 4096

// Folder is the path of a data folder.
type Folder string

// Note is what a server remembers about access beside its log.
type Note struct {
	// Recoveries is how often access was recovered, as far as the server has applied the log.
	Recoveries uint64 `json:"recoveries"`
	// Closed is true if the server serves no open cluster, which was decided when its folder was new.
	Closed bool `json:"closed,omitempty"`
	// Guarded is true once the server has applied that its cluster is guarded, which does not end.
	Guarded bool `json:"guarded,omitempty"`
}

// ErrNoNote means that no server of a version that knows recoveries has used the folder.
var ErrNoNote = errors.New("there is no " + NoteFile + ": start the server of this data folder once")

// ReadNote returns what the server of the folder remembers.
func (f Folder) ReadNote() (Note, error) {
	var note Note
	err := f.readFile(NoteFile, &note, false)
	if errors.Is(err, os.ErrNotExist) {
		return note, ErrNoNote
	}
	return note, err
}

// WriteNote replaces what the server remembers.
func (f Folder) WriteNote(n Note) error { return f.writeFile(NoteFile, n) }

// Begin returns the note of a folder, and writes the first one. If the folder has no identity yet, its server is
// closed; folders of earlier versions are not, because their clusters are in use.
func (f Folder) Begin() (Note, error) {
	note, err := f.ReadNote()
	if err == nil || !errors.Is(err, ErrNoNote) {
		return note, err
	}
	owner, err := host.ReadIdentity(string(f))
	if err != nil {
		return note, err
	}
	note.Closed = owner.ID == ""
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return note, fmt.Errorf("create the data folder: %w", err)
	}
	return note, f.WriteNote(note)
}

// Offer is a recovery that can be used.
type Offer struct {
	// Secret is the SHA-256 of the secret.
	Secret [sha256.Size]byte
	// Recoveries is the count for which it was made.
	Recoveries uint64
}

type offerText struct {
	Store      string `json:"store"`
	Recoveries uint64 `json:"recoveries"`
	Secret     string `json:"secret_sha256"`
}

// Prepare makes a secret, writes the offer for it, which replaces an earlier one, and returns the secret. The server
// may be running.
func (f Folder) Prepare() (secret string, note Note, err error) {
	owner, err := host.ReadIdentity(string(f))
	if err != nil {
		return "", note, err
	}
	if owner.Store == "" {
		return "", note, fmt.Errorf("%s is not the data folder of a server", f)
	}
	if note, err = f.ReadNote(); err != nil {
		return "", note, err
	}
	if err := f.checkUser(); err != nil {
		return "", note, err
	}
	secret = rand.Text() + rand.Text()
	hash := sha256.Sum256([]byte(secret))
	return secret, note, f.writeFile(OfferFile,
		offerText{Store: owner.Store, Recoveries: note.Recoveries, Secret: hex.EncodeToString(hash[:])})
}

// Offer reads the offer in the folder; false if there is none. It refuses a file that other users made or can use, a
// symbolic link, an offer of another folder, and one that is damaged.
func (f Folder) Offer() (Offer, bool, error) {
	var text offerText
	switch err := f.readFile(OfferFile, &text, true); {
	case errors.Is(err, os.ErrNotExist):
		return Offer{}, false, nil
	case err != nil:
		return Offer{}, false, err
	}
	owner, err := host.ReadIdentity(string(f))
	if err != nil {
		return Offer{}, false, err
	}
	if text.Store != owner.Store || owner.Store == "" {
		return Offer{}, false, fmt.Errorf("%s was made for another data folder", f.path(OfferFile))
	}
	offer := Offer{Recoveries: text.Recoveries}
	hash, err := hex.DecodeString(text.Secret)
	if err != nil || len(hash) != len(offer.Secret) {
		return Offer{}, false, fmt.Errorf("%s does not have the SHA-256 of a secret", f.path(OfferFile))
	}
	copy(offer.Secret[:], hash)
	return offer, true, nil
}

// RemoveSpent removes an offer for a count that is past. It reports whether it removed one.
func (f Folder) RemoveSpent(recoveries uint64) (bool, error) {
	var text offerText
	err := f.readFile(OfferFile, &text, false)
	if errors.Is(err, os.ErrNotExist) || err == nil && text.Recoveries >= recoveries {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, os.Remove(f.path(OfferFile))
}

func (f Folder) path(name string) string { return filepath.Join(string(f), name) }

func (f Folder) writeFile(name string, content any) error {
	text, err := json.Marshal(content)
	if err == nil {
		err = atomicfile.Write(f.path(name), func(w io.Writer) error { // its mode is 0600
			_, err := w.Write(append(text, '\n'))
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", f.path(name), err)
	}
	return nil
}

// readFile reads a file. If it must be private, it refuses one that other users than that of the server made or can
// use, and a symbolic link, which could lead to such a file.
func (f Folder) readFile(name string, content any, private bool) error {
	path, flags := f.path(name), os.O_RDONLY
	if private {
		flags |= syscall.O_NOFOLLOW
	}
	file, err := os.OpenFile(path, flags, 0)
	if errors.Is(err, syscall.ELOOP) {
		return fmt.Errorf("%s is a symbolic link, and has to be a file: remove it, and prepare the recovery again", path)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if mode := info.Mode(); !mode.IsRegular() || private && mode.Perm()&0o077 != 0 {
		return fmt.Errorf("%s (mode %04o) is not a file of its owner alone: chmod 0600 %s", path, mode.Perm(), path)
	}
	if owner, known := info.Sys().(*syscall.Stat_t); private && known && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to the user with the id %d, and this server runs as %d: remove it, and prepare the "+
			"recovery again as the user of the server", path, owner.Uid, os.Geteuid())
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if len(text) > maxFile {
		return fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	if err := json.Unmarshal(text, content); err != nil {
		return fmt.Errorf("%s is damaged: %w", path, err)
	}
	return nil
}
