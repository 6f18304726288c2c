package ledger

import (
	"iter"
	"slices"

	"github.com/quorate/quorate/quota/internal/ordmap"
)

// seats are the sitters of a row by seat. Most rows have few, for which a page of a map would be too much.
type seats struct {
	few  []taken // by seat; nil if there are many
	many *ordmap.Map[sitter]
}

type taken struct {
	seat uint64
	who  sitter
}

// fewSeats is how many sitters a list holds before it becomes a map.
const fewSeats = 32

func (s *seats) find(seat uint64) (int, bool) {
	return slices.BinarySearchFunc(s.few, seat, func(t taken, seat uint64) int {
		switch {
		case t.seat < seat:
			return -1
		case t.seat > seat:
			return 1
		}
		return 0
	})
}

// set gives a seat that is free to a sitter.
func (s *seats) set(seat uint64, who sitter) {
	if s.many != nil {
		s.many.Set(seat, who)
		return
	}
	i, _ := s.find(seat)
	s.few = slices.Insert(s.few, i, taken{seat, who})
	if len(s.few) > fewSeats {
		s.many = &ordmap.Map[sitter]{}
		for _, t := range s.few {
			s.many.Set(t.seat, t.who)
		}
		s.few = nil
	}
}

// free takes a seat away.
func (s *seats) free(seat uint64) {
	if s.many != nil {
		s.many.Delete(seat)
	} else if i, found := s.find(seat); found {
		s.few = slices.Delete(s.few, i, i+1)
	}
}

// get answers who sits in a seat.
func (s *seats) get(seat uint64) (sitter, bool) {
	if s.many != nil {
		return s.many.Get(seat)
	}
	if i, found := s.find(seat); found {
		return s.few[i].who, true
	}
	return sitter{}, false
}

// first is the seat that was taken first, and false if nobody sits.
func (s *seats) first() (uint64, sitter, bool) {
	if s.many != nil {
		return s.many.Min()
	}
	if len(s.few) == 0 {
		return 0, sitter{}, false
	}
	return s.few[0].seat, s.few[0].who, true
}

func (s *seats) count() int {
	if s.many != nil {
		return s.many.Len()
	}
	return len(s.few)
}

// all yields everybody by seat.
func (s *seats) all() iter.Seq2[uint64, sitter] {
	if s.many != nil {
		return s.many.All()
	}
	return func(yield func(uint64, sitter) bool) {
		for _, t := range s.few {
			if !yield(t.seat, t.who) {
				return
			}
		}
	}
}
