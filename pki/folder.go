package pki

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// What a folder of certificates holds beside a pair of files for each node and client.
const (
	authorityName  = "ca"
	gossipKeysFile = "gossip.keys"
)

// Folder is where "quorate tls" keeps an authority and what it has signed.
type Folder string

// Cert is the file of a holder's certificate.
func (f Folder) Cert(name string) string { return filepath.Join(string(f), name+".crt") }

// Key is the file of a holder's key.
func (f Folder) Key(name string) string { return filepath.Join(string(f), name+".key") }

// GossipKeys is the file of the keys of gossip.
func (f Folder) GossipKeys() string { return filepath.Join(string(f), gossipKeysFile) }

// CA is the file of the authority's certificate.
func (f Folder) CA() string { return f.Cert(authorityName) }

// Files are those of a holder.
func (f Folder) Files(name string) Files {
	return Files{CA: f.CA(), Cert: f.Cert(name), Key: f.Key(name)}
}

// Init makes the folder, if it is not there, with an authority and a key of gossip.
func (f Folder) Init(authority Pair) error {
	if err := f.Make(); err != nil {
		return err
	}
	if err := f.Write(authorityName, authority); err != nil {
		return err
	}
	return writeNewFile(f.GossipKeys(), []byte(NewGossipKey()+"\n"))
}

// Make makes the folder, if it is not there.
func (f Folder) Make() error {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return fmt.Errorf("make the folder of certificates: %w", err)
	}
	return nil
}

// Authority is the one that Init put there.
func (f Folder) Authority() (*Authority, error) {
	cert, err := os.ReadFile(f.CA())
	if err != nil {
		return nil, fmt.Errorf("no authority in %s: %w; \"quorate tls init\" makes one", string(f), err)
	}
	key, err := os.ReadFile(f.Key(authorityName))
	if err != nil {
		return nil, fmt.Errorf("the key of the authority in %s: %w; it is needed to sign", string(f), err)
	}
	return OpenAuthority(Pair{cert, key})
}

// Write writes the files of a pair, readable by their owner only. It does not overwrite files.
func (f Folder) Write(name string, p Pair) error {
	for _, path := range []string{f.Cert(name), f.Key(name)} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			return existsError(path)
		}
	}
	return errors.Join(writeNewFile(f.Key(name), p.Key), writeNewFile(f.Cert(name), p.Cert))
}

func existsError(path string) error {
	return fmt.Errorf("%s is there already, and nothing is overwritten: choose another folder, or move it away", path)
}

func writeNewFile(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return existsError(path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Inspect reads the certificates of a file.
func Inspect(path string) ([]*x509.Certificate, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	list, err := parseCertificates(text)
	if err != nil {
		return nil, fmt.Errorf("the certificates in %s: %w", path, err)
	}
	return list, nil
}
