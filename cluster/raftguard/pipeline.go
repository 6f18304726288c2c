package raftguard

import (
	"sync"

	"github.com/hashicorp/raft"
)

// pipeline never holds up who sends because nobody takes the answers.
//
// With two requests in flight, stock raft can hang: its decoder ends at the first answer that is no success, the transport
// waits for somebody to take the second, and the sender waits for the transport. The leader then never sends that follower
// an entry again for as long as it leads, while heartbeats go on. A follower whose disk failed under load, and that was
// started again, stayed behind in this way.
type pipeline struct {
	raft.AppendPipeline
	answers chan raft.AppendFuture
	closed  chan struct{}
	once    sync.Once
}

// AppendEntriesPipeline opens a pipeline whose sender is never held up by answers that nobody takes.
func (t *Transport) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	inner, err := t.Transport.AppendEntriesPipeline(id, target)
	if err != nil {
		return nil, err
	}
	p := &pipeline{AppendPipeline: inner, answers: make(chan raft.AppendFuture), closed: make(chan struct{})}
	go p.forwardAnswers()
	return p, nil
}

// Consumer gives the answers in the order of the requests.
func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.answers }

// Close ends the pipeline; answers that nobody took are lost.
func (p *pipeline) Close() error {
	p.once.Do(func() { close(p.closed) })
	return p.AppendPipeline.Close()
}

// forwardAnswers takes answers at once, and keeps them until somebody wants them. There are no more than requests in flight.
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
