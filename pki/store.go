package pki

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
)

const (
	// pollInterval is how often the files are looked at for changes.
	pollInterval = 3 * time.Second
	// warnBefore is when warnings of the end of a certificate begin, and warnEvery how often they come.
	warnBefore = 14 * 24 * time.Hour
	warnEvery  = 24 * time.Hour
	// remindEvery is how often the log says that one has ended.
	remindEvery = 10 * time.Minute
)

// Store has the certificates of one node, always the newest good ones. It is safe for concurrent use.
type Store struct {
	files Files
	me    Role
	log   hclog.Logger

	current           atomic.Pointer[material]
	reloads, failures atomic.Uint64

	mu     sync.Mutex // of Reload and warn
	seen   []os.FileInfo
	warned time.Time // that a certificate ends soon
	ended  time.Time // when the log said last that one has ended
}

// Open reads the certificates of a node. It refuses those of another node, and those that other nodes would not
// believe.
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

// loadFiles reads the files and uses what they hold if it is good.
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
		if !m.sameCertificates(before) {
			m.version++
		}
	}
	s.current.Store(m)
	return nil
}

// Reload reads the files again. What they hold is used for connections that begin from now on; Version tells those who
// keep connections open that they are to be replaced. If it is not good, the error says why, and what was used before
// stays in use.
func (s *Store) Reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = s.statFiles() // before reading: what changes in between is read once more
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

// Run takes changed files, and warns while a certificate nears its end, until ctx ends.
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

// statFiles is what the folder says of the files; nil for those that are not there.
func (s *Store) statFiles() []os.FileInfo {
	seen := make([]os.FileInfo, 0, 3)
	for _, path := range []string{s.files.CA, s.files.Cert, s.files.Key} {
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

// warnOfEnd says that a certificate ends soon, or has ended: then others refuse this node.
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
			s.log.Warn("a certificate ends soon: renew it", "which", c.whose, "ends", ends, "days-left", int(left.Hours()/24))
		}
	}
}

// Ends tells when the certificate in use ends, and the first of those of the authority.
func (s *Store) Ends() (own, authority time.Time) { return s.current.Load().endTimes() }

// Version rises whenever other certificates came into use, the node's own or those of authorities. A connection that
// was made at an older version was verified by what may not hold any more, and shows what this node showed then.
func (s *Store) Version() uint64 { return s.current.Load().version }

// Reloads counts how often files were read again: those that were used, and those that were not.
func (s *Store) Reloads() (used, refused uint64) { return s.reloads.Load(), s.failures.Load() }

// Empty tells that no file is named, which means plain text.
func (f Files) Empty() bool { return f == Files{} }

// Complete is an error if only some of the files of a node are named.
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
