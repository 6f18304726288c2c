package fsm

import (
	"context"
	"crypto/sha256"
	"io"
)

// Checkpointed is the state behind a checkpoint, frozen: all replicas have one of the same index.
type Checkpointed struct{ frozen *snapshot }

// Index is the log index of the checkpoint.
func (c *Checkpointed) Index() uint64 { return c.frozen.header.GetIndex() }

// Digest is over all that a snapshot of this moment would hold, the digest of the log among it. It takes as long as to
// write one, without the disk, and may be called beside Apply. It fails when ctx ends.
func (c *Checkpointed) Digest(ctx context.Context) ([sha256.Size]byte, error) {
	h := sha256.New()
	err := c.frozen.write(&until{ctx, h})
	return [sha256.Size]byte(h.Sum(nil)), err
}

// until writes for as long as a context lives.
type until struct {
	ctx context.Context //nolint:containedctx // it is the life of one write
	out io.Writer
}

func (u *until) Write(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.out.Write(p)
}
