package handlers

import (
	"crypto/sha256"
	"hash"
)

// chunker sends what is written to it in messages of one size, and sums it up.
type chunker struct {
	send   func([]byte) error
	buffer []byte
	size   uint64
	digest hash.Hash
}

// Write gathers bytes.
func (c *chunker) Write(data []byte) (int, error) {
	if c.digest == nil {
		c.digest = sha256.New()
	}
	c.digest.Write(data)
	c.size += uint64(len(data))
	written := len(data)
	for len(data) > 0 {
		n := min(len(data), chunkBytes-len(c.buffer))
		c.buffer = append(c.buffer, data[:n]...)
		data = data[n:]
		if len(c.buffer) == chunkBytes {
			if err := c.flushBuffer(); err != nil {
				return 0, err
			}
		}
	}
	return written, nil
}

func (c *chunker) flushBuffer() error {
	if len(c.buffer) == 0 {
		return nil
	}
	err := c.send(c.buffer)
	c.buffer = c.buffer[:0]
	return err
}

func (c *chunker) digestSum() []byte { return c.digest.Sum(nil) }
