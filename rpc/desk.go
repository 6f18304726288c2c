package rpc

import (
	"context"
	"sync"
	"time"

	"github.com/quorate/quorate/cluster"
)

// desk tells those who wait for one allocation each when something has happened to it. One reader of the feed serves all of
// them, for as long as somebody waits.
type desk struct {
	node Node

	mu sync.Mutex
	// bells are those of everybody who waits, by allocation.
	bells map[string][]chan struct{}
	// empty is closed when nobody waits any more; nil while nobody does.
	empty chan struct{}
}

const (
	// deskReads is how many facts the reader takes at once.
	deskReads = 256
	// deskPause is kept before the feed is asked again that could not answer.
	deskPause = 50 * time.Millisecond
)

func newDesk(node Node) *desk { return &desk{node: node, bells: map[string][]chan struct{}{}} }

// wait returns when done says so, which is asked at first and whenever something has happened to the allocation, or when
// the context ends.
func (d *desk) wait(ctx context.Context, id string, done func() bool) {
	for {
		bell := d.sit(id) // before looking, so that nothing is missed
		if done() {
			d.leave(id, bell)
			return
		}
		select {
		case <-bell:
		case <-ctx.Done():
			d.leave(id, bell)
			return
		}
	}
}

// sit gives a bell that is closed when something happens to the allocation from now on.
func (d *desk) sit(id string) chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	bell := make(chan struct{})
	d.bells[id] = append(d.bells[id], bell)
	if d.empty == nil {
		d.empty = make(chan struct{})
		from := cluster.LatestPosition()
		if bulletin, err := d.node.Events(from, 1); err == nil {
			from = bulletin.Next
		}
		go d.read(from, d.empty)
	}
	return bell
}

func (d *desk) leave(id string, bell chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, other := range d.bells[id] {
		if other == bell {
			d.bells[id] = append(d.bells[id][:i:i], d.bells[id][i+1:]...)
			break
		}
	}
	if len(d.bells[id]) == 0 {
		delete(d.bells, id)
	}
	d.rest()
}

// rest must be called with mu held.
func (d *desk) rest() {
	if len(d.bells) == 0 && d.empty != nil {
		close(d.empty)
		d.empty = nil
	}
}

// read rings until nobody waits any more. If the feed does not answer, everybody looks for himself.
func (d *desk) read(from cluster.Position, empty <-chan struct{}) {
	for {
		bulletin, err := d.node.Events(from, deskReads)
		if err != nil {
			d.ringAll()
			bulletin = cluster.EventPage{Next: cluster.LatestPosition(), Changed: soon()}
		}
		d.ring(bulletin.News)
		from = bulletin.Next
		if bulletin.Behind > 0 {
			continue
		}
		select {
		case <-bulletin.Changed:
		case <-empty:
			return
		}
	}
}

// soon is closed after the pause.
func soon() <-chan struct{} {
	closed := make(chan struct{})
	time.AfterFunc(deskPause, func() { close(closed) })
	return closed
}

func (d *desk) ring(news []cluster.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range news {
		d.strike(n.Allocation.ID())
	}
	d.rest()
}

func (d *desk) ringAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range d.bells {
		d.strike(id)
	}
	d.rest()
}

// strike must be called with mu held.
func (d *desk) strike(id string) {
	for _, bell := range d.bells[id] {
		close(bell)
	}
	delete(d.bells, id)
}
