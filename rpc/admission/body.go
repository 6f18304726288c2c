package admission

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/rpc/codec"
	"github.com/quorate/quorate/rpc/pipeline"
	"github.com/quorate/quorate/rpc/procedures"
	"github.com/quorate/quorate/rpc/wire"
)

// MaxDrained is how much of a body that is too large is read and thrown away, so that its sender gets to see the
// answer.
const MaxDrained = 16 << 20

// How long a body may take: a grace, and then as long as its sender keeps to bodyRate, in bytes a second; in no case
// longer than bodyPatience.
const (
	bodyPatience = 30 * time.Second
	bodyRate     = 64 << 10
)

// Pacing is how long a server waits for parts of a call that a caller announced. All servers have defaultPacing but
// those of tests.
type Pacing struct {
	// BodyGrace is for a body, before its rate counts; BusyBodyGrace while more than half of the places for calls are
	// taken.
	BodyGrace, BusyBodyGrace time.Duration
	// Tool is how long a stream of reflection or health may be silent.
	Tool time.Duration
}

var defaultPacing = Pacing{BodyGrace: 5 * time.Second, BusyBodyGrace: time.Second, Tool: 5 * time.Second}

func slowBodyError(received int64, after time.Duration) error {
	return wire.NodeError(&cluster.Error{Reason: cluster.Deadline, NotApplied: true, Text: fmt.Sprintf(
		"the request body came too slowly: %d bytes in %v, and a body must begin at once and keep to %d bytes a "+
			"second; nothing was done, send it again",
		received, after.Round(time.Millisecond), bodyRate)})
}

// bodyCharge is what the body of one call takes of the bytes that a server has for all of them. It is charged as
// bytes arrive, so that what is announced and does not come takes nothing. A body moves to the large ones when it
// grows beyond SmallBody: however many large bodies there are, small ones are admitted.
type bodyCharge struct {
	limiters     *CallLimiters
	caller       *Caller
	small, large int64
}

func (b *bodyCharge) chargeBytes(n int64) error {
	if b.limiters == nil {
		return nil // its calls are so few, and their bodies so small, that they need no common bound
	}
	if b.large == 0 && b.small+n <= SmallBody {
		if err := b.limiters.SmallBodies.TryAcquire(b.caller, n); err != nil {
			return err
		}
		b.small += n
		return nil
	}
	n += b.small
	if err := b.limiters.LargeBodies.TryAcquire(b.caller, n); err != nil {
		return err
	}
	b.large += n
	b.limiters.SmallBodies.Release(b.caller, b.small)
	b.small = 0
	return nil
}

func (b *bodyCharge) refundBytes() {
	if b.limiters == nil {
		return
	}
	b.limiters.SmallBodies.Release(b.caller, b.small)
	b.limiters.LargeBodies.Release(b.caller, b.large)
	b.small, b.large = 0, 0
}

// LimitBody reads and unpacks the body of a call with one request before anything else happens: too large a body is
// refused in the caller's protocol, and a relayed call can be sent again. What a caller streams passes untouched; its
// messages are bounded one by one.
func (a *Controller) LimitBody(x *pipeline.Exchange) bool {
	r := x.Request
	known := a.procedures[r.URL.Path]
	if known.Uploads {
		return true
	}
	notes := TicketOf(r.Context())
	charge, most := &notes.body, codec.MaxBody
	charge.limiters, charge.caller = notes.Limiters, notes.Caller
	if known.Kind != procedures.ServesClients {
		charge.limiters, most = nil, SmallBody
	}
	if codec.IsEnveloped(r) {
		most += codec.Envelope
	}
	body, err := a.receiveBody(x.Writer, r, charge, most)
	if err == nil {
		body, err = unpackBody(r, body, charge)
	}
	if err != nil {
		a.hooks.WriteError(x.Writer, r, err)
		return false
	}
	codec.SetBody(r, body)
	return true
}

// LimitFrontEndBody is LimitBody for front ends, which answer in their own words to a body that is too large.
func (a *Controller) LimitFrontEndBody(x *pipeline.Exchange) bool {
	r := x.Request
	notes := TicketOf(r.Context())
	charge := &notes.body
	charge.limiters, charge.caller = notes.Limiters, notes.Caller
	body, err := a.receiveBody(x.Writer, r, charge, codec.MaxBody)
	switch {
	case errors.Is(err, errTooLarge):
		r.Body = io.NopCloser(
			io.MultiReader(bytes.NewReader(body), failingReader{&http.MaxBytesError{Limit: codec.MaxBody}}))
	case err != nil:
		a.hooks.WriteError(x.Writer, r, err)
		return false
	default:
		codec.SetBody(r, body)
	}
	return true
}

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

// errTooLarge is the cause of the error of a body that is too large.
var errTooLarge = errors.New("the request is too large")

// receiveBody reads a body of at most so many bytes. With an error for its size it returns what it has read.
func (a *Controller) receiveBody(w http.ResponseWriter, r *http.Request, charge *bodyCharge, most int) ([]byte, error) {
	if r.ContentLength == 0 {
		return nil, nil
	}
	if content := codec.BytesOf(r); content != nil && len(content) <= most { // relayed together with others
		return content, charge.chargeBytes(int64(len(content)))
	}
	from := &bodyReader{
		body: r.Body, control: http.NewResponseController(w), charge: charge, most: most, began: time.Now(),
		grace: a.Pacing.BodyGrace,
	}
	if a.Limiters.Clients.Calls.isBusy() {
		from.grace = a.Pacing.BusyBodyGrace
	}
	body, err := from.readAll(min(max(r.ContentLength, 512), 4<<10), r.ContentLength > int64(most),
		codec.IsEnveloped(r))
	if err == nil && r.ProtoMajor < 2 {
		// In HTTP/1 the deadline is that of the connection, by which net/http learns that a caller has gone.
		_ = from.control.SetReadDeadline(time.Time{}) // a recorded connection has no deadlines
	}
	return body, err
}

type bodyReader struct {
	body     io.Reader
	control  *http.ResponseController
	charge   *bodyCharge
	most     int
	began    time.Time
	grace    time.Duration
	received int64
	deadline time.Time
}

// readAll reads the body into a buffer that grows with what arrives, not with what is announced.
func (a *bodyReader) readAll(first int64, announcedTooMuch, enveloped bool) ([]byte, error) {
	buffer := make([]byte, 0, first+1)
	for !announcedTooMuch {
		if len(buffer) == cap(buffer) {
			buffer = append(buffer, 0)[:len(buffer)]
		}
		n, err := a.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		if charged := a.charge.chargeBytes(int64(n)); charged != nil {
			return nil, charged
		}
		if enveloped && codec.AnnouncesTooMuch(buffer) || len(buffer) > a.most {
			break
		}
		if errors.Is(err, io.EOF) {
			return buffer, nil
		}
		if err != nil {
			return nil, a.readFailure(err)
		}
	}
	// A caller that still sends does not listen, and would see nothing but a broken connection.
	_, _ = io.CopyN(io.Discard, a, MaxDrained)
	limit := min(a.most, codec.MaxBody)
	return buffer, errors.Join(codec.LargerThanError("request", limit), errTooLarge)
}

// Read reads what comes next, if it comes in time.
func (a *bodyReader) Read(p []byte) (int, error) {
	due := a.began.Add(min(a.grace+time.Duration(a.received)*time.Second/bodyRate, bodyPatience))
	if due.Sub(a.deadline) >= time.Second || due.Equal(a.began.Add(bodyPatience)) && !due.Equal(a.deadline) {
		_ = a.control.SetReadDeadline(due) // a recorded connection has no deadlines; the body is bounded anyway
		a.deadline = due
	}
	n, err := a.body.Read(p)
	a.received += int64(n)
	return n, err
}

func (a *bodyReader) readFailure(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return slowBodyError(a.received, time.Since(a.began))
	}
	return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("the request body could not be read: %w", err))
}
