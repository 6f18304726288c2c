package boltstore

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/bits"
)

// The layout of a bbolt file, version 2: https://pkg.go.dev/go.etcd.io/bbolt. Numbers are in the native byte order of
// the machine that wrote it.
const (
	pageHeaderSize = 16
	metaSize       = 64
	metaMagic      = 0xED0CDAED
	metaVersion    = 2
	noFreelist     = math.MaxUint64 // as every file written by this package
	smallestPage   = 1 << 10
	largestPage    = 1 << 24
)

// meta is the part of a bbolt meta page that is verified; bbolt writes one after each transaction.
type meta struct {
	pageSize  uint64
	root      uint64 // page id of the root bucket
	highWater uint64 // first page that was never used
	txid      uint64
}

// readMeta reads both meta pages and returns the newer.
//
// If the newer one is damaged, bbolt uses the older one and so loses a transaction, which may contain an acknowledged
// entry or a vote. Therefore we refuse the file instead: 64 bytes in one sector are written either completely or not at
// all.
func readMeta(file io.ReaderAt) (meta, error) {
	first, err := readMetaAt(file, 0)
	if err != nil {
		return meta{}, fmt.Errorf("first meta page: %w", err)
	}
	second, err := readMetaAt(file, int64(first.pageSize))
	if err != nil {
		return meta{}, fmt.Errorf("second meta page: %w", err)
	}
	if first.pageSize != second.pageSize {
		return meta{}, fmt.Errorf("the meta pages give different page sizes, %d and %d", first.pageSize,
			second.pageSize)
	}
	if second.txid > first.txid {
		return second, nil
	}
	return first, nil
}

func readMetaAt(file io.ReaderAt, offset int64) (meta, error) {
	var page [pageHeaderSize + metaSize]byte
	if _, err := file.ReadAt(page[:], offset); err != nil {
		return meta{}, err
	}
	raw, order := page[pageHeaderSize:], binary.NativeEndian
	sum := fnv.New64a()
	sum.Write(raw[:metaSize-8]) // a hash never fails
	if order.Uint32(raw) != metaMagic || order.Uint32(raw[4:]) != metaVersion || order.Uint64(raw[56:]) != sum.Sum64() {
		return meta{}, fmt.Errorf("it is not a meta page, or its checksum does not match")
	}
	m := meta{
		pageSize:  uint64(order.Uint32(raw[8:])),
		root:      order.Uint64(raw[16:]),
		highWater: order.Uint64(raw[40:]),
		txid:      order.Uint64(raw[48:]),
	}
	if bits.OnesCount64(m.pageSize) != 1 || m.pageSize < smallestPage || m.pageSize > largestPage {
		return meta{}, fmt.Errorf("its page size %d is impossible", m.pageSize)
	}
	if order.Uint64(raw[32:]) != noFreelist && m.txid > 1 {
		return meta{}, fmt.Errorf("it lists free pages, which this server never writes")
	}
	return m, nil
}
