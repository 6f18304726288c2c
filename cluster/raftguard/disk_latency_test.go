package raftguard

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

type slowLog struct {
	raft.LogStore

	takes time.Duration
}

func (l *slowLog) StoreLogs(entries []*raft.Log) error {
	time.Sleep(l.takes)
	return l.LogStore.StoreLogs(entries)
}

func TestThePaceIsThatOfTheLastHalfMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowLog{LogStore: raft.NewInmemStore(), takes: time.Second}
		p := NewDiskLatency(slow)
		index := uint64(0)
		write := func() {
			index++
			if err := p.StoreLogs([]*raft.Log{{Index: index, Term: 1}}); err != nil {
				t.Error(err)
			}
		}
		want := func(when string, mean time.Duration, writes int) {
			t.Helper()
			if m, n := p.Mean(); m != mean || n != writes {
				t.Errorf("%s: a mean of %v over %d writes, want %v over %d", when, m, n, mean, writes)
			}
		}
		want("at first", 0, 0)
		write()
		slow.takes = 3 * time.Second
		write()
		want("after a second and three", 2*time.Second, 2)
		time.Sleep(time.Minute)
		want("a minute later", 0, 0)
		slow.takes = time.Hour
		go write()
		time.Sleep(10 * time.Second)
		want("while the disk hangs", 10*time.Second, 1)
		time.Sleep(time.Hour)
	})
}
