package walstore

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestSegmentsAreReadUpToTheirZeros: what is before the zeros at the end of a file is found in each of its blocks and
// at their borders, and the zeros are part of what is returned.
func TestSegmentsAreReadUpToTheirZeros(t *testing.T) {
	for _, size := range []int{0, 1, blockBytes - 1, blockBytes, blockBytes + 1, 3*blockBytes + 5} {
		for _, written := range []int{0, 1, 7, blockBytes - 1, blockBytes, blockBytes + 1, 2*blockBytes + 5, size} {
			if written > size {
				continue
			}
			want := make([]byte, size)
			if written > 0 {
				want[0], want[written-1] = 1, 2
			}
			path := filepath.Join(t.TempDir(), "segment")
			if err := os.WriteFile(path, want, 0o600); err != nil {
				t.Fatal(err)
			}
			data, n, err := readSegment(path)
			if err != nil || n != written || !bytes.Equal(data, want) {
				t.Errorf("of %d bytes, %d before zeros: read %d, %d before zeros, %v", size, written, len(data), n, err)
			}
		}
	}
}
