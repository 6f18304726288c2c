package pki

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
)

const (
	// pollInterval is how often the files are checked for changes.
	pollInterval = 3 * time.Second
	// warnBefore is how long before the end of a certificate warnings begin, and warnEvery how often they are repeated.
	warnBefore = 14 * 24 * time.Hour
	warnEvery  = 24 * time.Hour
	// remindEvery is how often the log repeats that a certificate has ended.
	remindEvery = 10 * time.Minute
)

// Store has the certificates of one node and replaces them when valid new files are there. It is safe for concurrent
// use.
type Store struct {
	files Files
	me    Role
	log   hclog.Logger

	current           atomic.Pointer[material]
	reloads, failures atomic.Uint64

	mu     sync.Mutex // held by Reload and warnOfEnd
	seen   []os.FileInfo
	warned time.Time // when the log last said that a certificate ends soon
	ended  time.Time // when the log last said that one has ended
}

// Open reads the certificates of a node. Certificates of another node, or that other nodes would not accept, are an
// error.
func Open(files Files, cluster, id string, log hclog.Logger) (*Store, error) {
	if log == nil {
		log = hclog.NewNullLogger()
	}
	s := &Store{files: files, me: Role{Cluster: cluster, Kind: Node, Name: id}, log: log}
	s.seen = s.statFiles()
	if err := s.loadFiles(); err != nil {
		return nil, err
	}
	s.warnOfEnd(time.Now())
	return s, nil
}

// loadFiles keeps the former content if the new one is not valid.
func (s *Store) loadFiles() error {
	m, err := s.files.readMaterial()
	if err == nil {
		err = m.verifyOwn(s.me)
	}
	if err != nil {
		return err
	}
	if before := s.current.Load(); before != nil {
		m.version = before.version
		if m.sameClientAuthorities(before) {
			m.clientRoots = before.clientRoots
		}
		if !m.sameCertificates(before) {
			m.version++
		}
	}
	s.current.Store(m)
	return nil
}

// Reload reads the files again. Their content is used for connections that begin from now on; a change of Version
// means that open connections are to be replaced. If the content is not valid, Reload returns an error and the
// certificates in use stay.
func (s *Store) Reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = s.statFiles() // before reading, so that a change in between is noticed later
	if err := s.loadFiles(); err != nil {
		s.failures.Add(1)
		return fmt.Errorf("the certificates in use stay as they were: %w", err)
	}
	s.reloads.Add(1)
	s.warned, s.ended = time.Time{}, time.Time{}
	own, _ := s.current.Load().endTimes()
	s.log.Info("certificates read again", "holder", s.me.String(), "valid-until", own.UTC().Format(time.RFC3339))
	return nil
}

// Run reloads changed files, and logs warnings when a certificate is about to end, until ctx ends.
func (s *Store) Run(ctx context.Context) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if s.filesChanged() {
				if err := s.Reload(); err != nil {
					s.log.Error("changed certificates are not used", "error", err)
				}
			}
			s.warnOfEnd(now)
		}
	}
}

// statFiles has nil for a file that does not exist.
func (s *Store) statFiles() []os.FileInfo {
	seen := make([]os.FileInfo, 0, 4)
	for _, path := range []string{s.files.CA, s.files.Cert, s.files.Key, cmp.Or(s.files.ClientCA, s.files.CA)} {
		info, err := os.Stat(path)
		if err != nil {
			info = nil
		}
		seen = append(seen, info)
	}
	return seen
}

func (s *Store) filesChanged() bool {
	now := s.statFiles()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, before := range s.seen {
		if now[i] == nil || before == nil {
			if now[i] != before {
				return true
			}
			continue
		}
		if !os.SameFile(before, now[i]) || !before.ModTime().Equal(now[i].ModTime()) || before.Size() != now[i].Size() {
			return true
		}
	}
	return false
}

// warnOfEnd logs that a certificate ends soon, or has ended, so that other nodes refuse this one.
func (s *Store) warnOfEnd(now time.Time) {
	own, authority := s.Ends()
	s.mu.Lock()
	defer s.mu.Unlock()
	remind, warn := now.Sub(s.ended) >= remindEvery, now.Sub(s.warned) >= warnEvery
	for _, c := range []struct {
		whose string
		ends  time.Time
	}{{"certificate of " + s.me.String(), own}, {"certificate of an authority", authority}} {
		left, ends := c.ends.Sub(now), c.ends.UTC().Format(time.RFC3339)
		switch {
		case left < 0 && remind:
			s.ended = now
			s.log.Error("a certificate has ended, others refuse it: renew it", "which", c.whose, "ended", ends)
		case left >= 0 && left < warnBefore && warn:
			s.warned = now
			s.log.Warn("a certificate ends soon: renew it", "which", c.whose, "ends", ends, "days-left",
				int(left.Hours()/24))
		}
	}
}

// Ends returns when the certificate in use ends, and the first one of the authorities.
func (s *Store) Ends() (own, authority time.Time) { return s.current.Load().endTimes() }

// Version increases whenever other certificates come into use, the node's own or those of authorities. A connection
// that was made at an older version was verified with the certificates of that time.
func (s *Store) Version() uint64 { return s.current.Load().version }

// Reloads returns how often files were read again and used, and how often they were refused.
func (s *Store) Reloads() (used, refused uint64) { return s.reloads.Load(), s.failures.Load() }

// Empty reports whether no file is named, which means plain text.
func (f Files) Empty() bool { return f == Files{} }

// Complete returns an error if only some of the files of a node are named. ClientCA may be missing.
func (f Files) Complete() error {
	if f.Empty() {
		return nil
	}
	for _, part := range []struct{ value, setting string }{{f.CA, "tls-ca"}, {f.Cert, "tls-cert"}, {f.Key, "tls-key"}} {
		if part.value == "" {
			return fmt.Errorf("%s is missing: tls-ca, tls-cert and tls-key belong together", part.setting)
		}
	}
	return nil
}
