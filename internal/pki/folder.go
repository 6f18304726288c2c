package pki

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// The names of files in a folder of certificates, besides a pair for each node and client.
const (
	authorityName       = "ca"
	gossipKeysFile      = "gossip.keys"
	bootstrapSecretFile = "bootstrap.secret"
)

// Folder is the folder in which "quorate tls" keeps an authority and the certificates that it signed.
type Folder string

// Cert returns the path of a holder's certificate.
func (f Folder) Cert(name string) string { return filepath.Join(string(f), name+".crt") }

// Key is the file of a holder's key.
func (f Folder) Key(name string) string { return filepath.Join(string(f), name+".key") }

// GossipKeys returns the path of the gossip keys.
func (f Folder) GossipKeys() string { return filepath.Join(string(f), gossipKeysFile) }

// BootstrapSecret returns the path of the secret for the first token of the cluster.
func (f Folder) BootstrapSecret() string { return filepath.Join(string(f), bootstrapSecretFile) }

// CA returns the path of the authority's certificate.
func (f Folder) CA() string { return f.Cert(authorityName) }

// Files returns the paths of a holder.
func (f Folder) Files(name string) Files {
	return Files{CA: f.CA(), Cert: f.Cert(name), Key: f.Key(name)}
}

// Init makes the folder if necessary, and writes an authority, a gossip key and a bootstrap secret.
func (f Folder) Init(authority Pair) error {
	if err := f.Make(); err != nil {
		return err
	}
	if err := f.Write(authorityName, authority); err != nil {
		return err
	}
	return errors.Join(
		writeNewFile(f.GossipKeys(), []byte(NewGossipKey()+"\n")),
		writeNewFile(f.BootstrapSecret(), []byte(NewBootstrapSecret()+"\n")),
	)
}

// Make makes the folder if it does not exist.
func (f Folder) Make() error {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return fmt.Errorf("make the folder of certificates: %w", err)
	}
	return nil
}

// HasAuthority reports whether the certificate of an authority is in the folder.
func (f Folder) HasAuthority() bool {
	_, err := os.Lstat(f.CA())
	return err == nil
}

// Authority returns the authority that Init wrote.
func (f Folder) Authority() (*Authority, error) {
	cert, err := os.ReadFile(f.CA())
	if err != nil {
		return nil, fmt.Errorf("no authority in %s: %w; \"quorate tls create\" makes one", string(f), err)
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
	return fmt.Errorf("%s exists and is not overwritten: choose another folder, or move the file away", path)
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

// bootstrapSecretBytes is the size of new bootstrap secrets, 256 bits.
const bootstrapSecretBytes = 32

// NewBootstrapSecret makes a secret, as the one line of its file.
func NewBootstrapSecret() string {
	secret := make([]byte, bootstrapSecretBytes)
	_, _ = rand.Read(secret) // it never fails
	return base64.RawURLEncoding.EncodeToString(secret)
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
