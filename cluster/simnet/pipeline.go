package simnet

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// pipelineDepth is the number of requests that may be in flight in one pipeline.
const pipelineDepth = 64

// AppendEntriesPipeline opens a pipeline to target: one connection, on which requests and answers keep their order.
func (t *Transport) AppendEntriesPipeline(_ raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	peer, err := t.net.transportAt(target)
	if err != nil {
		return nil, err
	}
	p := &pipeline{
		net: t.net, peer: peer, there: link{t.address, target}, back: link{target, t.address},
		requests: make(chan *inFlight, pipelineDepth), answers: make(chan *inFlight, pipelineDepth),
		done: make(chan raft.AppendFuture), broken: make(chan struct{}), closed: make(chan struct{}), owner: t.closed,
	}
	if !t.net.startCarrier(p.carryThere) || !t.net.startCarrier(p.carryBack) {
		p.once.Do(func() { close(p.closed) })
		return nil, errClosed
	}
	return p, nil
}

type pipeline struct {
	net         *Network
	peer        *Transport
	there, back link
	requests    chan *inFlight
	answers     chan *inFlight
	done        chan raft.AppendFuture
	owner       <-chan struct{}
	broken      chan struct{} // closed by carryBack when a loss is noticed

	once   sync.Once
	closed chan struct{}
}

// inFlight is one pipelined request and its raft.AppendFuture.
type inFlight struct {
	started   time.Time
	request   *raft.AppendEntriesRequest
	response  *raft.AppendEntriesResponse
	arrives   time.Time // arrival of the request, then of the answer
	answer    answer
	completed chan struct{}
}

// AppendEntries sends a request without waiting for its answer. It blocks while too many are in flight.
func (p *pipeline) AppendEntries(
	args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) (raft.AppendFuture, error) {
	f := &inFlight{started: time.Now(), request: args, response: resp, completed: make(chan struct{})}
	delay, err := p.net.sendDelay(p.there)
	f.answer.err = err
	f.arrives = f.started.Add(delay)
	select {
	case <-p.broken:
		return nil, errLost
	case <-p.closed:
		return nil, raft.ErrPipelineShutdown
	default:
	}
	select {
	case p.requests <- f:
		return f, nil
	case <-p.broken:
		return nil, errLost
	case <-p.closed:
		return nil, raft.ErrPipelineShutdown
	case <-p.owner:
		return nil, errClosed
	}
}

// Consumer returns the requests whose answers have arrived, in order.
func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.done }

// Close breaks the connection. Requests in flight may still take effect at the other end.
func (p *pipeline) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// carryThere stops when a request is lost.
func (p *pipeline) carryThere() {
	for {
		f := nextInFlight(p, p.requests)
		if f == nil {
			return
		}
		if f.answer.err == nil {
			f.answer.err = p.awaitArrival(f, p.there)
		}
		if f.answer.err == nil {
			f.answer = p.peer.handleRequest(copyAppend(f.request), nil)
		}
		if f.answer.err == nil {
			var delay time.Duration
			delay, f.answer.err = p.net.sendDelay(p.back)
			f.arrives = time.Now().Add(delay)
		}
		broken := f.answer.err != nil
		if !passOn(p, p.answers, f) || broken {
			return
		}
	}
}

// carryBack delivers the answers, one after the other, to raft. The first loss ends the pipeline.
func (p *pipeline) carryBack() {
	for {
		f := nextInFlight(p, p.answers)
		if f == nil {
			return
		}
		if f.answer.err == nil {
			f.answer.err = p.awaitArrival(f, p.back)
		}
		broken := f.answer.err != nil
		f.answer.err = p.net.senderError(f.answer.err)
		f.completeRequest()
		if broken {
			close(p.broken)
		}
		if !passOn(p, p.done, raft.AppendFuture(f)) || broken {
			return
		}
	}
}

func (p *pipeline) awaitArrival(f *inFlight, way link) error {
	if err := p.net.sleepOrClose(time.Until(f.arrives)); err != nil {
		return err
	}
	return p.net.checkArrival(way)
}

// nextInFlight is nil when the pipeline ends.
func nextInFlight(p *pipeline, stage <-chan *inFlight) *inFlight {
	select {
	case f := <-stage:
		return f
	case <-p.closed:
	case <-p.owner:
	case <-p.net.done:
	}
	return nil
}

// passOn is false when the pipeline ends.
func passOn[T any](p *pipeline, stage chan<- T, f T) bool {
	select {
	case stage <- f:
		return true
	case <-p.closed:
	case <-p.owner:
	case <-p.net.done:
	}
	return false
}

func (f *inFlight) completeRequest() {
	if response, ok := f.answer.response.(*raft.AppendEntriesResponse); ok {
		*f.response = *response
	}
	close(f.completed)
}

// Error waits for the answer and returns the error, if there is one.
func (f *inFlight) Error() error {
	<-f.completed
	return f.answer.err
}

// Start returns when the request was sent.
func (f *inFlight) Start() time.Time { return f.started }

// Request returns what was sent.
func (f *inFlight) Request() *raft.AppendEntriesRequest { return f.request }

// Response returns the answer, once Error has returned.
func (f *inFlight) Response() *raft.AppendEntriesResponse { return f.response }
