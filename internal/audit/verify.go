package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// Head is the newest record of a chain. The zero value stands before the first one.
type Head struct {
	Number uint64
	Hash   Hash
}

// Verifier checks that lines are records of their chains, one behind the other, with none missing. A chain may begin
// with any record, because older files are removed. The zero value is ready.
type Verifier struct {
	// Ledger and Server are the newest records so far.
	Ledger, Server Head
	// FirstLedger and FirstServer are the numbers of the oldest records.
	FirstLedger, FirstServer uint64
	// Records counts all records.
	Records uint64
	// Missing counts the records of the ledger in gaps that the file declares.
	Missing uint64

	// gap is true behind a declared gap: then the chain of the ledger continues at gapEnds with any hash before it.
	gap     bool
	gapEnds uint64
	id      string
}

// Add checks the next line and returns its record.
func (v *Verifier) Add(line []byte) (Record, error) {
	r, err := Decode(line)
	if err != nil {
		return Record{}, err
	}
	if r.Chain == Server {
		err = v.addServer(&r)
	} else {
		err = v.addLedger(&r)
	}
	if err != nil {
		return Record{}, err
	}
	v.Records++
	return r, nil
}

func (v *Verifier) addServer(r *Record) error {
	if v.FirstServer == 0 {
		v.FirstServer, v.id = r.Number, r.Server
	} else if err := follows(v.Server, r); err != nil {
		return err
	}
	if v.id != r.Server {
		return fmt.Errorf("the record %d of the chain server is of the server %q, those before are of %q", r.Number, r.Server,
			v.id)
	}
	v.Server = Head{r.Number, r.Hash}
	if r.Kind != Gap {
		return nil
	}
	if r.From == 0 || r.To < r.From-1 {
		return fmt.Errorf("the record %d of the chain server declares a gap from %d to %d", r.Number, r.From, r.To)
	}
	v.gap, v.gapEnds = true, r.To+1
	v.Missing += r.To + 1 - r.From
	return nil
}

func (v *Verifier) addLedger(r *Record) error {
	switch {
	case v.gap && r.Number != v.gapEnds:
		return fmt.Errorf("the record %d of the chain ledger follows a gap that ends before %d", r.Number, v.gapEnds)
	case v.gap || v.FirstLedger == 0:
	default:
		if err := follows(v.Ledger, r); err != nil {
			return err
		}
	}
	if v.FirstLedger == 0 {
		v.FirstLedger = r.Number
	}
	v.gap = false
	v.Ledger = Head{r.Number, r.Hash}
	return nil
}

func follows(before Head, r *Record) error {
	switch {
	case r.Number != before.Number+1:
		return fmt.Errorf("the record %d of the chain %s follows record %d: records are missing, repeated or not in order",
			r.Number, r.Chain, before.Number)
	case r.Previous != before.Hash:
		return fmt.Errorf("the record %d of the chain %s does not continue record %d: that one was changed or replaced",
			r.Number, r.Chain, before.Number)
	}
	return nil
}

// ErrTorn is the error of a file that does not end with the end of a line, as after a crash while it was written.
var ErrTorn = errors.New("the last line is not complete")

// ReadLines calls fn with each line of a file, without its newline, and its number from 1. The line is valid during
// the call. An error of fn ends it. The error is ErrTorn if the last line has no newline.
func ReadLines(from io.Reader, fn func(number int, line []byte) error) error {
	in := bufio.NewReaderSize(from, MaxLine+1)
	for number := 1; ; number++ {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil
		case errors.Is(err, io.EOF):
			return ErrTorn
		case errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("line %d is longer than any record", number)
		case err != nil:
			return err
		}
		if err := fn(number, line[:len(line)-1]); err != nil {
			return err
		}
	}
}
