package server

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/server/recovery"
	"github.com/quorate/quorate/rpc"
)

// Lengths of a bootstrap secret in bytes. A shorter one could be guessed, and a longer one is not accepted by the API.
const (
	minBootstrapSecret = 32
	maxBootstrapSecret = 128
)

// loadBootstrapSecret returns the SHA-256 of the secret in a file, without white space around it; zero for no file. It
// refuses a file that is not private, because the secret makes its holder an administrator.
func loadBootstrapSecret(path string) ([sha256.Size]byte, error) {
	var none [sha256.Size]byte
	if path == "" {
		return none, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return none, fmt.Errorf("bootstrap-secret-file: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return none, fmt.Errorf("bootstrap-secret-file: %w", err)
	}
	if mode := info.Mode(); !isPrivate(mode, isOthersFile(info)) {
		return none, fmt.Errorf("bootstrap-secret-file: %s (mode %04o) is not a file of its owner alone: chmod 0600 %s",
			path, mode.Perm(), path)
	}
	text, err := io.ReadAll(io.LimitReader(file, 2*maxBootstrapSecret))
	if err != nil {
		return none, fmt.Errorf("bootstrap-secret-file: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if len(secret) < minBootstrapSecret || len(secret) > maxBootstrapSecret {
		return none, fmt.Errorf("bootstrap-secret-file: the secret in %s has %d bytes; %d to %d are allowed: %w", path,
			len(secret), minBootstrapSecret, maxBootstrapSecret, errSecretLength)
	}
	return sha256.Sum256([]byte(secret)), nil
}

// isPrivate reports whether a file is for one user alone. The group may read the file of another user: systems that run
// containers hand secrets over so, as files of root that a group of the process reads.
func isPrivate(mode fs.FileMode, isOthers bool) bool {
	forbidden := fs.FileMode(0o077)
	if isOthers {
		forbidden = 0o037
	}
	return mode.IsRegular() && mode.Perm()&forbidden == 0
}

// errSecretLength says how to make a good secret.
var errSecretLength = errors.New("make one with \"(umask 077; openssl rand -base64 32 > bootstrap.secret)\"")

func recoveryOffer(s Settings) func() (rpc.RecoveryOffer, bool, error) {
	folder := recovery.Folder(s.DataDir)
	return func() (rpc.RecoveryOffer, bool, error) {
		offer, offered, err := folder.Offer()
		return rpc.RecoveryOffer(offer), offered, err
	}
}

func startRecoveryWatch(node *cluster.Node, s Settings, note recovery.Note, log hclog.Logger) (stop func()) {
	watcher := &recovery.Watcher{
		Folder: recovery.Folder(s.DataDir), Book: node.Book, Log: log.Named("access"), Note: note,
	}
	return startLoop(watcher.Run)
}

// servesOpen reports whether the node serves a cluster that is open: one that only this machine reaches does, and one
// that may by its settings.
func (s Settings) servesOpen() bool {
	return s.Insecure || s.InsecureOpen ||
		IsLoopback(s.HTTPAddr) && (s.boskosAddr() == "" || IsLoopback(s.boskosAddr()))
}

// decideClosed reports whether a node serves no open cluster. The decision is made when its data folder is new and kept
// there: a cluster of an earlier version is in use, and its settings could not say that it should stay open.
func decideClosed(s Settings, note recovery.Note, log hclog.Logger) bool {
	switch {
	case s.servesOpen():
		return false
	case !note.Closed:
		log.Warn("other machines reach this node, and while its cluster is open everyone may do everything: guard it "+
			"(quorate access status), or set insecure-open", "http-addr", s.HTTPAddr)
		return false
	}
	log.Info("this node serves its cluster to other machines once it is guarded", "first", "quorate token create")
	return true
}
