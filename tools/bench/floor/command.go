package main

import (
	"encoding/binary"
	"errors"
)

// An entry of the log is a sequence of commands. A command begins with its kind. Texts have their length in front;
// numbers are unsigned varints.
const (
	// kindNothing begins an entry that only loads raft. It has no other commands.
	kindNothing = iota
	// kindAllocate is followed by the id, the path of the leaf and an amount of each resource.
	kindAllocate
	// kindRelease is followed by the id.
	kindRelease
)

var errDamaged = errors.New("the entry is damaged")

type command struct {
	kind     byte
	id, node []byte
	amounts  amounts
}

func appendAllocate(entry []byte, id, node string, held amounts) []byte {
	entry = append(entry, kindAllocate)
	entry = appendText(entry, id)
	entry = appendText(entry, node)
	for _, amount := range held {
		entry = binary.AppendUvarint(entry, uint64(amount))
	}
	return entry
}

func appendRelease(entry []byte, id string) []byte {
	return appendText(append(entry, kindRelease), id)
}

func appendText(entry []byte, text string) []byte {
	return append(binary.AppendUvarint(entry, uint64(len(text))), text...)
}

// readCommand decodes the first command of an entry that is not empty, and returns the rest.
func readCommand(entry []byte) (c command, rest []byte, err error) {
	c.kind, rest = entry[0], entry[1:]
	if c.id, rest, err = readText(rest); err != nil {
		return c, nil, err
	}
	switch c.kind {
	case kindRelease:
		return c, rest, nil
	case kindAllocate:
	default:
		return c, nil, errDamaged
	}
	if c.node, rest, err = readText(rest); err != nil {
		return c, nil, err
	}
	for i := range c.amounts {
		amount, size := binary.Uvarint(rest)
		if size <= 0 {
			return c, nil, errDamaged
		}
		c.amounts[i], rest = int64(amount), rest[size:]
	}
	return c, rest, nil
}

func readText(entry []byte) (text, rest []byte, err error) {
	length, size := binary.Uvarint(entry)
	if size <= 0 || uint64(len(entry)-size) < length {
		return nil, nil, errDamaged
	}
	end := size + int(length)
	return entry[size:end], entry[end:], nil
}
