package cluster

import "github.com/quorate/quorate/fsm"

// What the feed of facts says, and where: see the state machine.
type (
	// Position is a place in the feed, the same on all nodes.
	Position = fsm.Position
	// News is a fact with its place.
	News = fsm.News
	// Bulletin is what the feed has to say at one moment.
	Bulletin = fsm.Bulletin
)

// FeedSize is how many facts a node remembers.
const FeedSize = fsm.FeedSize

// After is the position behind everything that the entry of an index did: the one to read news from after a read.
func After(index uint64) Position { return fsm.After(index) }

// Latest is the position behind everything that a node has applied when it is asked.
func Latest() Position { return fsm.Latest() }

// News answers at most so many facts behind a position, at least one, from what this node has applied; the bulletin says
// where to go on and when. Any node can. The error says Forgotten if the position is too far back.
func (n *Node) News(after Position, most int) (Bulletin, error) {
	if err := n.serving(); err != nil {
		return Bulletin{}, err
	}
	bulletin, err := n.ledger.News(after, most)
	if err != nil {
		return Bulletin{}, failure(Forgotten, true, err, "node %s cannot go on from entry %d; look at the state and go on from the index "+
			"of that", n.config.ID, after.Index)
	}
	return bulletin, nil
}
