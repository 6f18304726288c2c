package chaos

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Check judges a history by itself and reports every broken promise.
func Check(operations []Operation) error {
	return errors.Join(checkFences(operations), checkOrder(operations), checkLimits(operations), checkReads(operations))
}

// checkFences: a fence belongs to one id, and an id keeps its fence however often it is repeated (P2, P5).
func checkFences(operations []Operation) error {
	var broken []error
	fenceOf, idOf := map[string]uint64{}, map[uint64]string{}
	for _, o := range operations {
		if o.Verdict != Granted {
			continue
		}
		if fence, known := fenceOf[o.ID]; known && fence != o.Fence {
			broken = append(broken, fmt.Errorf("P2: %s was granted under fence %d and again under %d", o.ID, fence, o.Fence))
		}
		if id, known := idOf[o.Fence]; known && id != o.ID {
			broken = append(broken, fmt.Errorf("P5: fence %d was given to %s and to %s", o.Fence, id, o.ID))
		}
		fenceOf[o.ID], idOf[o.Fence] = o.Fence, o.ID
	}
	return errors.Join(broken...)
}

// checkOrder: a grant that was answered before another was asked for has the smaller fence (P7).
func checkOrder(operations []Operation) error {
	var grants []Operation
	for _, o := range operations {
		if o.Verdict == Granted && !o.Repeated {
			grants = append(grants, o)
		}
	}
	byReturn, byCall := slices.Clone(grants), grants
	slices.SortFunc(byReturn, func(a, b Operation) int { return a.Returned.Compare(b.Returned) })
	slices.SortFunc(byCall, func(a, b Operation) int { return a.Called.Compare(b.Called) })
	var highest Operation
	done := 0
	for _, o := range byCall {
		for ; done < len(byReturn) && byReturn[done].Returned.Before(o.Called); done++ {
			if byReturn[done].Fence > highest.Fence {
				highest = byReturn[done]
			}
		}
		if o.Fence <= highest.Fence {
			return fmt.Errorf("P7: %s got fence %d although %s had been answered with fence %d before", o.ID, o.Fence, highest.ID, highest.Fence)
		}
	}
	return nil
}

// checkLimits replays grants and releases in the order of the log and never finds more held than allowed (P1). Where it
// cannot know, it assumes the harmless: what shares an index is released first, a release without verdict took effect
// when it was called, one that was answered only when it was repeated did so too, a grant without verdict did not happen.
func checkLimits(operations []Operation) error {
	var steps []Operation
	doubtful := map[string]bool{}
	granted := map[string]bool{}
	for _, o := range operations {
		if o.Kind == Release && o.Verdict == Unknown {
			doubtful[o.ID] = true
		}
	}
	for _, o := range operations {
		switch {
		case o.Verdict == Released:
			if o.Repeated {
				o.Index = o.After
			}
			steps = append(steps, o)
		case o.Verdict == Granted && !granted[o.ID] && !doubtful[o.ID]:
			granted[o.ID] = true
			steps = append(steps, o)
		}
	}
	slices.SortStableFunc(steps, func(a, b Operation) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(b.Kind, a.Kind))
	})
	perWorker, all := map[int]int64{}, int64(0)
	for _, o := range steps {
		change := o.Amount
		if o.Kind == Release {
			change = -change
		}
		perWorker[o.Worker] += change
		all += change
		if perWorker[o.Worker] > LeafLimit || all > RootLimit {
			return fmt.Errorf("P1: after %s at index %d worker %d holds %d of %d and all hold %d of %d",
				o.ID, o.Index, o.Worker, perWorker[o.Worker], LeafLimit, all, RootLimit)
		}
	}
	return nil
}

// checkReads: a linearizable read of a leaf that only the reader changes sees exactly what the reader holds (P3, P7).
func checkReads(operations []Operation) error {
	for _, o := range operations {
		if o.Verdict == Observed && o.Seen != o.Expected {
			return fmt.Errorf("P7: worker %d held %d and read %d at index %d", o.Worker, o.Expected, o.Seen, o.Index)
		}
	}
	return nil
}

// StillHeld are the ids that must be held at the end, and those that may be.
func StillHeld(operations []Operation) (must, may map[string]Operation) {
	must, may = map[string]Operation{}, map[string]Operation{}
	for _, o := range operations {
		switch {
		case o.Verdict == Granted:
			must[o.ID] = o
		case o.Verdict == Released:
			delete(must, o.ID)
		case o.Verdict == Unknown && o.Kind == Release:
			delete(must, o.ID)
			may[o.ID] = o
		case o.Verdict == Unknown && o.Kind == Allocate:
			may[o.ID] = o
		}
	}
	return must, may
}
