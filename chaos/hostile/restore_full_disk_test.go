package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
)

const (
	restoreChunk = 256 << 10
	// sentByEach is how much of the announced 1 GiB one attacker sends.
	sentByEach = 32 << 20
	// maxKeptBytes is how much of it a server may keep.
	maxKeptBytes = 8 << 20
)

// TestRestoresDoNotFillTheDisk: attackers who know the cluster name send restores of 1 GiB to the leader and a
// follower at once, while the disk has less free space than the reserve. The servers refuse them without keeping any
// data.
func TestRestoresDoNotFillTheDisk(t *testing.T) {
	c := startCluster(t, clusterOptions{args: []string{"--disk-reserve", fmt.Sprint(1 << 30)}})
	leader, follower := c.findLeader(t)
	var attackers sync.WaitGroup
	var mu sync.Mutex
	codes := map[connect.Code]int{}
	for i := range 4 {
		n := leader
		if i%2 == 1 {
			n = follower
		}
		client := adminv1connect.NewSnapshotServiceClient(c.httpClient(t, ""), n.URL())
		attackers.Go(func() {
			stream, err := client.Restore(t.Context())
			if err != nil {
				return
			}
			err = stream.Send(&adminv1.RestoreRequest{Message: &adminv1.RestoreRequest_Confirmation{
				Confirmation: &adminv1.RestoreConfirmation{ClusterName: "quorate", Size: 1 << 30, RaiseLevel: true},
			}})
			chunk := &adminv1.RestoreRequest{Message: &adminv1.RestoreRequest_Chunk{Chunk: make([]byte,
				restoreChunk)}}
			for sent := 0; sent < sentByEach && err == nil; sent += restoreChunk {
				err = stream.Send(chunk)
			}
			time.Sleep(2 * time.Second) // what was sent is kept meanwhile
			_, err = stream.CloseAndReceive()
			mu.Lock()
			codes[connect.CodeOf(err)]++
			mu.Unlock()
		})
	}
	done := make(chan struct{})
	go func() { attackers.Wait(); close(done) }()
	most := map[string]int64{}
	for attacked := true; attacked; {
		select {
		case <-done:
			attacked = false
		case <-time.After(50 * time.Millisecond):
		}
		for _, n := range c.nodes {
			most[n.ID] = max(most[n.ID], n.unnamedBytes(t))
		}
	}
	t.Logf("answers: %v, kept at most: %v", codes, most)
	if codes[connect.CodeResourceExhausted] == 0 {
		t.Errorf("no restore was refused for want of room: %v", codes)
	}
	for _, n := range c.nodes {
		if most[n.ID] > maxKeptBytes {
			t.Errorf("%s kept %d MiB of restores that it must refuse", n.ID, most[n.ID]>>20)
		}
		if !n.Running() {
			t.Errorf("%s has stopped", n.ID)
		}
	}
	c.awaitReady(t)
}

// unnamedBytes returns the size of all open files of a server that have been deleted.
func (n *node) unnamedBytes(t *testing.T) (total int64) {
	t.Helper()
	if !n.Running() {
		return 0
	}
	folder := fmt.Sprintf("/proc/%d/fd", n.PID())
	entries, err := os.ReadDir(folder)
	if err != nil {
		return 0 // it has ended meanwhile
	}
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		if target, err := os.Readlink(path); err == nil && strings.HasSuffix(target, " (deleted)") {
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				total += info.Size()
			}
		}
	}
	return total
}
