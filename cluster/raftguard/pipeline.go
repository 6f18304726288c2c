package raftguard

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// idlePause is how long a pipeline holds back a request that tells the follower nothing new. Heartbeats, which are as
// frequent, do not pass it.
const idlePause = 100 * time.Millisecond

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
	// appended is closed when the log has an entry behind an index; nil to hold nothing back. told is the commit index of
	// the last request.
	appended func(index uint64) <-chan struct{}
	told     uint64
}

// PauseWhenIdle holds back requests that tell a follower nothing new, until the log has an entry behind an index. raft
// sends such a request after each CommitTimeout, in case the commit index has changed: a hundred a second, of which an
// idle cluster needs none.
func PauseWhenIdle(appended func(index uint64) <-chan struct{}) TransportOption {
	return func(t *Transport) { t.appended = appended }
}

// AppendEntriesPipeline opens a pipeline whose sender is never blocked by answers that are not consumed.
func (t *Transport) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	inner, err := t.Transport.AppendEntriesPipeline(id, t.addressOf(id, target))
	if err != nil {
		return nil, err
	}
	p := &pipeline{
		AppendPipeline: inner, check: t.checkSilenced, answers: make(chan raft.AppendFuture), closed: make(chan struct{}),
		appended: t.appended,
	}
	go p.forwardAnswers()
	return p, nil
}

// AppendEntries sends a request without waiting for its answer. raft calls it on one goroutine.
func (p *pipeline) AppendEntries(
	args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) (raft.AppendFuture, error) {
	if p.appended != nil && p.isIdle(args) {
		p.awaitEntry(args.PrevLogEntry)
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	p.told = args.LeaderCommitIndex
	return p.AppendPipeline.AppendEntries(args, resp)
}

// isIdle is true if the follower has been told that all it has is committed: nothing more can be before the log has
// another entry.
func (p *pipeline) isIdle(args *raft.AppendEntriesRequest) bool {
	return len(args.Entries) == 0 && args.PrevLogEntry <= args.LeaderCommitIndex && args.LeaderCommitIndex == p.told
}

// awaitEntry waits until the log has an entry behind an index, but no longer than idlePause.
func (p *pipeline) awaitEntry(index uint64) {
	pause := time.NewTimer(idlePause)
	defer pause.Stop()
	select {
	case <-p.appended(index):
	case <-pause.C:
	case <-p.closed:
	}
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
