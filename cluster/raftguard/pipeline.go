package raftguard

import (
	"sync"

	"github.com/hashicorp/raft"
)

// pipeline buffers answers, so that the sender is never blocked by answers that are not consumed.
//
// With two requests in flight, stock raft can hang: its decoder ends at the first answer that is not a success, the
// transport waits for a consumer of the second answer, and the sender waits for the transport. The leader then never
// sends that follower an entry again for as long as it leads, while heartbeats continue. This was observed with a
// follower whose disk failed under load and that was restarted.
type pipeline struct {
	raft.AppendPipeline
	check   func() error // before each request
	answers chan raft.AppendFuture
	closed  chan struct{}
	once    sync.Once
}

// AppendEntriesPipeline opens a pipeline whose sender is never blocked by answers that are not consumed.
func (t *Transport) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	inner, err := t.Transport.AppendEntriesPipeline(id, t.addressOf(id, target))
	if err != nil {
		return nil, err
	}
	p := &pipeline{
		AppendPipeline: inner, check: t.checkSilenced, answers: make(chan raft.AppendFuture), closed: make(chan struct{}),
	}
	go p.forwardAnswers()
	return p, nil
}

// AppendEntries sends a request without waiting for its answer.
func (p *pipeline) AppendEntries(
	args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) (raft.AppendFuture, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	return p.AppendPipeline.AppendEntries(args, resp)
}

// Consumer returns the answers in the order of the requests.
func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.answers }

// Close ends the pipeline; answers that were not consumed are lost.
func (p *pipeline) Close() error {
	p.once.Do(func() { close(p.closed) })
	return p.AppendPipeline.Close()
}

// forwardAnswers receives answers at once and buffers them for the consumer. There are at most as many as requests in
// flight.
func (p *pipeline) forwardAnswers() {
	var kept []raft.AppendFuture
	for {
		var answers chan raft.AppendFuture
		var next raft.AppendFuture
		if len(kept) > 0 {
			answers, next = p.answers, kept[0]
		}
		select {
		case answer, open := <-p.AppendPipeline.Consumer():
			if !open {
				return
			}
			kept = append(kept, answer)
		case answers <- next:
			kept = kept[1:]
		case <-p.closed:
			return
		}
	}
}
