package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// Types and element sizes of the pages in use.
const (
	branchPage    = 0x01
	leafPage      = 0x02
	elementSize   = 16
	bucketElement = 0x01 // a leaf element whose value is a bucket
	bucketSize    = 16   // of its header: root page, sequence
)

// The buckets that raft-boltdb creates. If one were missing, it would create a new one and raft would start from
// nothing.
const (
	logsBucket   = "logs"
	stableBucket = "conf"
)

// verifyFile checks that every page in use is intact and in its place. It reads the file instead of mapping it: a
// truncated mapping kills the process, and bbolt's own check panics on a goroutine of its own.
func verifyFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("verify %s: %w", path, err)
	}
	defer func() { _ = file.Close() }() // read only: nothing can be lost
	err = verifyPages(file)
	var damage *damageError
	if errors.As(err, &damage) {
		return &CorruptError{Path: path, Reason: damage.reason}
	}
	if err != nil {
		return fmt.Errorf("verify %s: %w", path, err)
	}
	return nil
}

// damageError distinguishes damage from a failure to read.
type damageError struct{ reason string }

func (e *damageError) Error() string { return e.reason }

func newDamageError(format string, args ...any) error {
	return &damageError{reason: fmt.Sprintf(format, args...)}
}

func verifyPages(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return newDamageError("it is empty, and a server never leaves it so")
	}
	m, err := readMeta(file)
	if err != nil {
		return newDamageError("%v", err)
	}
	if need := m.highWater * m.pageSize; m.highWater > uint64(info.Size()) || need > uint64(info.Size()) {
		return newDamageError("it is truncated: %d of %d bytes are left", info.Size(), need)
	}
	w := &pageVerifier{file: file, meta: m, seen: make([]bool, m.highWater), buckets: map[string]bool{}}
	if err := w.verifyPage(m.root, nil, nil, ""); err != nil {
		return err
	}
	for _, name := range []string{logsBucket, stableBucket} {
		if !w.buckets[name] {
			return newDamageError("the bucket %q is missing", name)
		}
	}
	return nil
}

type pageVerifier struct {
	file    *os.File
	meta    meta
	seen    []bool
	buckets map[string]bool
}

// verifyPage verifies the page id and all pages below it. Its keys must satisfy low <= key < high, where nil means no
// bound. bucket is the name of the bucket that it belongs to, "" for the bucket of buckets.
func (w *pageVerifier) verifyPage(id uint64, low, high []byte, bucket string) error {
	raw, err := w.readPage(id)
	if err != nil {
		return err
	}
	return w.verifyElements(raw, id, low, high, bucket)
}

func (w *pageVerifier) readPage(id uint64) ([]byte, error) {
	if id < 2 || id >= w.meta.highWater {
		return nil, newDamageError("page %d is referred to but does not exist", id)
	}
	raw := make([]byte, w.meta.pageSize)
	if _, err := w.file.ReadAt(raw, int64(id*w.meta.pageSize)); err != nil {
		return nil, err
	}
	if got := binary.NativeEndian.Uint64(raw); got != id {
		return nil, newDamageError("page %d says that it is page %d", id, got)
	}
	last := id + uint64(binary.NativeEndian.Uint32(raw[12:]))
	if last >= w.meta.highWater {
		return nil, newDamageError("page %d reaches beyond the end", id)
	}
	for i := id; i <= last; i++ {
		if w.seen[i] {
			return nil, newDamageError("page %d is referred to twice", i)
		}
		w.seen[i] = true
	}
	if last == id {
		return raw, nil
	}
	raw = make([]byte, (last-id+1)*w.meta.pageSize)
	_, err := w.file.ReadAt(raw, int64(id*w.meta.pageSize))
	return raw, err
}

func (w *pageVerifier) verifyElements(raw []byte, id uint64, low, high []byte, bucket string) error {
	kind, count := binary.NativeEndian.Uint16(raw[8:]), int(binary.NativeEndian.Uint16(raw[10:]))
	if kind != branchPage && kind != leafPage {
		return newDamageError("page %d is of the unknown kind %#x", id, kind)
	}
	if kind == branchPage && count == 0 {
		return newDamageError("branch page %d is empty", id)
	}
	elements, err := elementsOf(raw, kind, count)
	if err != nil {
		return newDamageError("page %d: %v", id, err)
	}
	if err := checkOrder(elements, low, high); err != nil {
		return newDamageError("page %d: %v", id, err)
	}
	for i, e := range elements {
		if kind == leafPage {
			err = w.verifyLeaf(e, bucket)
		} else {
			next := high
			if i+1 < count {
				next = elements[i+1].key
			}
			err = w.verifyPage(e.child, e.key, next, bucket)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// element is one entry of a page: in a branch it has a child, in a leaf flags and a value.
type element struct {
	key, value []byte
	flags      uint32
	child      uint64
}

func elementsOf(raw []byte, kind uint16, count int) ([]element, error) {
	table := pageHeaderSize + count*elementSize
	if table > len(raw) {
		return nil, fmt.Errorf("%d elements do not fit", count)
	}
	elements := make([]element, count)
	for i := range elements {
		at := pageHeaderSize + i*elementSize
		e, pos, keySize, valueSize := decodeElement(raw[at:], kind)
		start, keyEnd := uint64(at)+uint64(pos), uint64(at)+uint64(pos)+uint64(keySize)
		end := keyEnd + uint64(valueSize)
		if start < uint64(table) || end > uint64(len(raw)) {
			return nil, fmt.Errorf("element %d lies outside", i)
		}
		e.key, e.value = raw[start:keyEnd], raw[keyEnd:end]
		elements[i] = e
	}
	return elements, nil
}

func decodeElement(raw []byte, kind uint16) (e element, pos, keySize, valueSize uint32) {
	order := binary.NativeEndian
	if kind == branchPage {
		return element{child: order.Uint64(raw[8:])}, order.Uint32(raw), order.Uint32(raw[4:]), 0
	}
	return element{flags: order.Uint32(raw)}, order.Uint32(raw[4:]), order.Uint32(raw[8:]), order.Uint32(raw[12:])
}

func checkOrder(elements []element, low, high []byte) error {
	for i, e := range elements {
		if i > 0 && bytes.Compare(elements[i-1].key, e.key) >= 0 {
			return fmt.Errorf("the keys of elements %d and %d are not in order", i-1, i)
		}
	}
	if n := len(elements); n > 0 {
		if low != nil && bytes.Compare(elements[0].key, low) < 0 {
			return fmt.Errorf("its first key belongs to an earlier page")
		}
		if high != nil && bytes.Compare(elements[n-1].key, high) >= 0 {
			return fmt.Errorf("its last key belongs to a later page")
		}
	}
	return nil
}

// verifyLeaf verifies one element of a leaf: a bucket at the top level, a value within a bucket.
func (w *pageVerifier) verifyLeaf(e element, bucket string) error {
	if (e.flags == bucketElement) != (bucket == "") || e.flags > bucketElement {
		return newDamageError("the element %q is of the unknown kind %#x", e.key, e.flags)
	}
	if bucket == "" {
		return w.verifyBucket(string(e.key), e.value)
	}
	if bucket == stableBucket {
		if _, err := stripChecksum(e.key, e.value); err != nil {
			return newDamageError("%v", err)
		}
	}
	return nil
}

// verifyBucket verifies a tree of its own or, while the bucket is small, a page within the value.
func (w *pageVerifier) verifyBucket(name string, value []byte) error {
	if name != logsBucket && name != stableBucket {
		return newDamageError("there is an unknown bucket %q", name)
	}
	if len(value) < bucketSize {
		return newDamageError("the bucket %q has no header", name)
	}
	w.buckets[name] = true
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		return w.verifyPage(root, nil, nil, name)
	}
	inline := value[bucketSize:]
	if len(inline) < pageHeaderSize || binary.NativeEndian.Uint16(inline[8:]) != leafPage {
		return newDamageError("the bucket %q has no page", name)
	}
	return w.verifyElements(inline, 0, nil, nil, name)
}
