package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// History is the operations of one run in the order in which they ended.
type History struct {
	Ops []Op
}

var (
	allKinds = []Kind{
		Allocate, Renew, Release, Confirm, Cancel, Resize, Transfer, Split, Configure, ReadUsage, ReadAllocation,
		ListHeld, ListWaiting, ReadLimits, Schedule, ReadSchedule, Change, Crossing, BoskosAcquire, BoskosRelease,
		BoskosUpdate,
	}
	allOutcomes = []Outcome{OK, Refused, Failed, Unknown}
)

// Read reads a history that a Recorder wrote. A truncated last line is left out, as the harness may have been killed;
// any other invalid operation is an error that names its number.
func Read(in io.Reader) (History, error) {
	var h History
	for decoder := json.NewDecoder(in); ; {
		var o Op
		err := decoder.Decode(&o)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return h, nil
		case err != nil:
			return History{}, fmt.Errorf("operation %d of the history: %w", len(h.Ops)+1, err)
		}
		if err := o.validate(); err != nil {
			return History{}, fmt.Errorf("operation %d of the history: %w", len(h.Ops)+1, err)
		}
		h.Ops = append(h.Ops, o)
	}
}

// validate returns an error for what a Recorder does not write.
func (o *Op) validate() error {
	switch {
	case !slices.Contains(allKinds, o.Kind):
		return fmt.Errorf("kind is %q, not one of %v", o.Kind, allKinds)
	case !slices.Contains(allOutcomes, o.Outcome):
		return fmt.Errorf("outcome is %q, not one of %v", o.Outcome, allOutcomes)
	case o.Call < 0 || o.Return < o.Call:
		return fmt.Errorf("it was called at %d and returned at %d", o.Call, o.Return)
	}
	return nil
}
