package idindex

import (
	"encoding/binary"
	"math/bits"
)

// Hash is the hash of a text, the same in every process. It is not a defence against texts that are chosen to collide:
// those cost no more than [farthest] slots and a Go map, which has a random key.
func Hash(id string) uint64 {
	const first, second = 0xa0761d6478bd642f, 0xe7037ed1a0b428db // as in wyhash: odd, with half of the bits set
	h, rest := uint64(len(id))*first, id
	for len(rest) >= 8 {
		h = fold(h^word(rest), first)
		rest = rest[8:]
	}
	if len(id) >= 8 {
		return fold(h^word(id[len(id)-8:]), second) // the last eight bytes, of which some may be in it already
	}
	var short [8]byte
	copy(short[:], rest)
	return fold(fold(h^binary.LittleEndian.Uint64(short[:]), first), second)
}

func word(s string) uint64 {
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// fold mixes all bits of two numbers.
func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}
