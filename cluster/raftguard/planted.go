package raftguard

import (
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/quota"
)

// plantedPatience is how long the planted bug waits for a server before it takes its consent for granted.
const plantedPatience = 100 * time.Millisecond

// early is true for the planted bug that counts servers which have not answered. Without the tag planted it is false for good.
func early() bool { return quota.Planted("early-acknowledge") }

// takeForGranted is AppendEntries with the bug.
func (t *Transport) takeForGranted(
	id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) error {
	var answer raft.AppendEntriesResponse
	request, done := *args, make(chan error, 1)
	go func() { done <- t.Transport.AppendEntries(id, target, &request, &answer) }()
	select {
	case err := <-done:
		if err == nil {
			*resp = answer
			return nil
		}
	case <-time.After(plantedPatience):
	}
	*resp = raft.AppendEntriesResponse{RPCHeader: args.RPCHeader, Term: args.Term, Success: true, LastLog: args.PrevLogEntry}
	return nil
}
