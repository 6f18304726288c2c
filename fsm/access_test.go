package fsm

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/verify"
)

// randomBook is a book after random changes that the book allows.
func randomBook() *rapid.Generator[*access.Book] {
	return rapid.Custom(func(t *rapid.T) *access.Book {
		book := access.NewBook(access.Open)
		wall := int64(1_800_000_000_000)
		name := func() string { return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name") }
		token := func() access.NewToken {
			id := access.TokenID{rapid.Byte().Draw(t, "id"), 1}
			return access.NewToken{ID: id, Hash: sha256.Sum256(id[:]), Ends: wall + rapid.Int64Range(1, 1e9).Draw(t, "ends")}
		}
		for index := range rapid.IntRange(0, 30).Draw(t, "changes") {
			var c access.Command
			switch rapid.IntRange(0, 6).Draw(t, "kind") {
			case 0:
				c = access.CreateAccount{Account: access.Account{Name: name(), Groups: []string{name()}}}
			case 1:
				ceiling := access.Verbs(rapid.Uint64Range(1, uint64(access.AllVerbs)).Draw(t, "ceiling"))
				c = access.CreateToken{Account: name(), Token: token(), Ceiling: ceiling}
			case 2:
				c = access.RevokeToken{ID: token().ID}
			case 3:
				key := access.RefusedKey{Kind: access.RefusedUser, Name: "cert/" + name()}
				c = access.Refuse{Refused: access.Refused{RefusedKey: key, Until: wall + 1000, Reason: name()}}
			case 4:
				c = access.Bootstrap{
					Secret: [32]byte{byte(index + 1)}, Account: name(), Token: token(), IsRecovery: rapid.Bool().Draw(t, "recovery"),
					Recoveries: book.Recoveries(), Member: name(),
				}
			case 5:
				c = access.DeleteAccount{Name: name()}
			default:
				to := []access.Subject{{Kind: access.AccountSubject, Name: name()}, {Kind: access.Everyone}}
				section := book.Section()
				section.Bindings = append(section.Bindings[:len(section.Bindings):len(section.Bindings)],
					access.Binding{Role: "viewer", To: to})
				c = access.ReplaceSection{Section: section}
			}
			if change, refused := book.Apply(c, access.Moment{Wall: wall, Index: uint64(index + 1)}); refused == nil {
				book = change.After
			}
		}
		return book
	})
}

// TestBooksSurviveSnapshots: any book is the same after a snapshot and a restore, and the snapshot after them has the
// same bytes. Without a change of access a snapshot has no record of it.
func TestBooksSurviveSnapshots(t *testing.T) {
	f := New(Options{})
	unchanged := snapshotOf(t, f)
	full := 0
	verify.Check(t, func(rt *rapid.T) {
		book := randomBook().Draw(rt, "book")
		g := withBook(t, f, book)
		data := snapshotOf(t, g)
		if book.Revision() == 0 && !bytes.Equal(data, unchanged) {
			rt.Fatal("an unchanged book is written")
		}
		again := restored(t, data)
		if diff := cmp.Diff(book.State(), again.Book().State(), cmpopts.EquateEmpty()); diff != "" {
			rt.Fatalf("(-before +after):\n%s", diff)
		}
		if !bytes.Equal(snapshotOf(t, again), data) {
			rt.Fatal("a restored state is written otherwise")
		}
		if s := book.State(); len(s.Tokens) > 0 && len(s.Refused) > 0 && len(s.Section.Bindings) > 0 {
			full++
		}
	})
	if full == 0 {
		t.Error("no book had a token, a refusal and a binding")
	}
}

// TestNoRecordGrowsWithTheBook: the largest lists are written in small records.
func TestNoRecordGrowsWithTheBook(t *testing.T) {
	s := sampleBook(t).State()
	s.Accounts, s.Tokens, s.Refused = nil, nil, nil
	for i := range access.MaxAccounts {
		a := access.Account{Name: fmt.Sprintf("a%05d", i), Description: strings.Repeat("d", 100)}
		s.Accounts = append(s.Accounts, a)
		s.Tokens = append(s.Tokens, access.Token{
			ID: access.TokenID{byte(i), byte(i >> 8), 1}, Account: a.Name, Ceiling: access.AllVerbs, Ends: 9,
		})
		s.Refused = append(s.Refused, access.Refused{
			RefusedKey: access.RefusedKey{Kind: access.RefusedUser, Name: fmt.Sprintf("corp/%05d", i)}, Until: 9,
		})
	}
	book, refused := access.Load(s)
	if refused != nil {
		t.Fatal(refused)
	}
	f := withBook(t, New(Options{}), book)
	r := newRecords(t, snapshotOf(t, f))
	largest := 0
	for _, record := range r {
		largest = max(largest, proto.Size(record))
	}
	if len(r) < 3*access.MaxAccounts || largest > 4096 {
		t.Errorf("%d records, the largest of %d bytes", len(r), largest)
	}
}

func newRecords(t *testing.T, data []byte) []*logv1.Record {
	t.Helper()
	r := &recordReader{in: bufio.NewReader(bytes.NewReader(data)), digest: sha256.New()}
	if _, err := r.readHeader(); err != nil {
		t.Fatal(err)
	}
	var list []*logv1.Record
	for {
		if err := r.readRecord(); err != nil {
			t.Fatal(err)
		}
		record, err := r.decodeRecord()
		if err != nil {
			t.Fatal(err)
		}
		if record.GetTrailer() != nil {
			return list
		}
		list = append(list, record)
	}
}

// TestBadRecordsOfAccessAreRefused: out of order, twice, malformed, or against the rules of the book.
func TestBadRecordsOfAccessAreRefused(t *testing.T) {
	f := accessFSM(t)
	good := newRecords(t, snapshotOf(t, f))
	index := func(matches func(*logv1.Record) bool) int {
		for i, r := range good {
			if matches(r) {
				return i
			}
		}
		t.Fatal("no such record")
		return 0
	}
	book := index(func(r *logv1.Record) bool { return r.GetAccess() != nil })
	account := index(func(r *logv1.Record) bool { return r.GetAccount() != nil })
	token := index(func(r *logv1.Record) bool { return r.GetToken() != nil })
	refused := index(func(r *logv1.Record) bool { return r.GetRefused() != nil })
	tree := index(func(r *logv1.Record) bool { return r.GetTree() != nil })
	for name, edit := range map[string]func([]*logv1.Record) []*logv1.Record{
		"as it is":                   nil,
		"no book":                    func(l []*logv1.Record) []*logv1.Record { return without(l, book) },
		"two books":                  func(l []*logv1.Record) []*logv1.Record { return inserted(l, book, l[book]) },
		"a book behind a tree":       func(l []*logv1.Record) []*logv1.Record { return moved(l, book, tree) },
		"an account behind a tree":   func(l []*logv1.Record) []*logv1.Record { return moved(l, account, tree) },
		"an account behind tokens":   func(l []*logv1.Record) []*logv1.Record { return moved(l, token-1, token) },
		"a token behind refusals":    func(l []*logv1.Record) []*logv1.Record { return moved(l, refused-1, refused) },
		"an account twice":           func(l []*logv1.Record) []*logv1.Record { return inserted(l, account, l[account]) },
		"a token without an account": func(l []*logv1.Record) []*logv1.Record { return without(l, account+1) },
		"a short id": func(l []*logv1.Record) []*logv1.Record {
			l[token].GetToken().Id = []byte{1}
			return l
		},
		"a short hash": func(l []*logv1.Record) []*logv1.Record {
			l[token].GetToken().Hash = []byte{1}
			return l
		},
		"a long spent secret": func(l []*logv1.Record) []*logv1.Record {
			l[book].GetAccess().Spent = make([]byte, 33)
			return l
		},
		"a book without a revision": func(l []*logv1.Record) []*logv1.Record {
			l[book].GetAccess().Revision, l[book].GetAccess().Mode = 0, 0
			return l
		},
		"an unknown mode": func(l []*logv1.Record) []*logv1.Record {
			l[book].GetAccess().Mode = 256
			return l
		},
		"an unknown kind of refusal": func(l []*logv1.Record) []*logv1.Record {
			l[refused].GetRefused().Key.Kind = 258
			return l
		},
	} {
		list := make([]*logv1.Record, len(good))
		for i, r := range good {
			list[i] = proto.Clone(r).(*logv1.Record)
		}
		if edit != nil {
			list = edit(list)
		}
		err := New(Options{}).Restore(io.NopCloser(bytes.NewReader(written(t, f, list))))
		if (err != nil) != (edit != nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func without(list []*logv1.Record, i int) []*logv1.Record { return append(list[:i:i], list[i+1:]...) }

func inserted(list []*logv1.Record, at int, r *logv1.Record) []*logv1.Record {
	return append(append(list[:at:at], r), list[at:]...)
}

func moved(list []*logv1.Record, from, behind int) []*logv1.Record {
	return inserted(without(list, from), behind, list[from])
}

func written(t *testing.T, f *FSM, list []*logv1.Record) []byte {
	t.Helper()
	out := bytes.NewBufferString(snapshotMark)
	w := &recordWriter{out: out, digest: sha256.New()}
	header := &logv1.Record{Record: &logv1.Record_Header{Header: f.newSnapshot().header}}
	for _, r := range append([]*logv1.Record{header}, list...) {
		if err := w.writeRecord(r); err != nil {
			t.Fatal(err)
		}
	}
	trailer := &logv1.Trailer{Records: w.records, Digest: w.digest.Sum(nil)}
	if err := w.writeRecord(&logv1.Record{Record: &logv1.Record_Trailer{Trailer: trailer}}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestTheBookIsCompared: replicas with different books have different digests, and different chains from the next entry
// on.
func TestTheBookIsCompared(t *testing.T) {
	f := New(Options{})
	g := withBook(t, f, sampleBook(t))
	var digests [][sha256.Size]byte
	for _, machine := range []*FSM{f, g} {
		machine.options.OnCheckpoint = func(c *Checkpointed) {
			c.snapshot.header.Chain = nil // the records alone must tell them apart
			digest, err := c.Digest(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			digests = append(digests, digest)
		}
		applyData(machine, 2, joined(t, Checkpoint()))
	}
	if len(digests) != 2 || digests[0] == digests[1] {
		t.Error("the digests of states with different books are equal")
	}
	if f.chain == g.chain {
		t.Error("the chains of states with different books are equal")
	}
}

// TestTheBookIsPublished after entries, restores and replacements, without the lock.
func TestTheBookIsPublished(t *testing.T) {
	f := New(Options{})
	if f.Book() == nil || f.Book().Revision() != 0 {
		t.Error("a new state machine has no book")
	}
	data := snapshotOf(t, accessFSM(t))
	if err := f.Restore(io.NopCloser(bytes.NewReader(data))); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	book := f.Book()
	f.mu.Unlock()
	if diff := cmp.Diff(sampleBook(t).State(), book.State(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("after a restore (-want +got):\n%s", diff)
	}
	g := New(Options{})
	applySteps(t, g, steps(t, "r", data)...)
	if g.Book() != g.ledger.Reader().Book() || g.Book().Revision() != book.Revision() {
		t.Error("after a replacement the book is an earlier one")
	}
}

// TestAReplacementKeepsTheBook: the present one, or without one that of the backup, but never tokens of the backup.
// Bindings of nodes are those of the backup.
func TestAReplacementKeepsTheBook(t *testing.T) {
	backup := snapshotOf(t, accessFSM(t))
	fresh := New(Options{})
	applySteps(t, fresh, steps(t, "r", backup)...)
	want := sampleBook(t).State()
	want.Tokens = nil
	if diff := cmp.Diff(want, fresh.Book().State(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("without a book (-want +got):\n%s", diff)
	}

	own := access.NewBook(access.Open)
	change, refused := own.Apply(access.CreateAccount{Account: access.Account{Name: "own"}}, access.Moment{Index: 1})
	if refused != nil {
		t.Fatal(refused)
	}
	open := snapshotOf(t, policiesFSM(t))
	for name, snapshot := range map[string][]byte{"a guarded backup": backup, "an open one": open} {
		f := withBook(t, New(Options{}), change.After)
		applySteps(t, f, steps(t, "r", snapshot)...)
		if diff := cmp.Diff(change.After.State(), f.Book().State(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", name, diff)
		}
		bound := strings.Contains(describeImage(t, f.ledger.Snapshot()), `"Role": "broker"`)
		if isBackup := name == "a guarded backup"; bound != isBackup {
			t.Errorf("after %s nodes have bindings: %v", name, bound)
		}
		if again := restored(t, snapshotOf(t, f)); !bytes.Equal(snapshotOf(t, again), snapshotOf(t, f)) {
			t.Errorf("after %s the state is not restored", name)
		}
	}
}
