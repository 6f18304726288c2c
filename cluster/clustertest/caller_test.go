package clustertest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/cluster/simnet"
	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/fsm/backup"
	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// eva is a caller, and evaContext one of her calls.
var eva = &access.Caller{Kind: access.External, User: "cert/eva", Credential: [16]byte{1}, Request: "r1"}

func evaContext(t *testing.T) context.Context {
	t.Helper()
	return cluster.WithCaller(t.Context(), eva)
}

func startWithKnownDisks(t *testing.T, size int, options ...clustertest.Option,
) (*clustertest.Cluster, map[string]*simnet.Disk) {
	t.Helper()
	disks := map[string]*simnet.Disk{}
	parts := clustertest.WithParts(func(id string) cluster.Parts {
		if disks[id] == nil {
			disks[id] = simnet.NewDisk(3)
		}
		return cluster.Parts{Logs: disks[id], Stable: disks[id], Snapshots: disks[id].Snapshots}
	})
	return clustertest.Start(t, size, append(options, parts)...), disks
}

func loggedCallers(t *testing.T, disk *simnet.Disk) []string {
	t.Helper()
	first, _ := disk.FirstIndex()
	last, _ := disk.LastIndex()
	var list []string
	for index := first; index <= last; index++ {
		var entry raft.Log
		if err := disk.GetLog(index, &entry); err != nil {
			t.Fatal(err)
		}
		if entry.Type != raft.LogCommand {
			continue
		}
		var data logv1.Entry
		if err := proto.Unmarshal(entry.Data[1:], &data); err != nil {
			t.Fatal(err)
		}
		var callers []string
		for _, run := range data.GetCallers() {
			who := "none"
			if c := run.GetCaller(); c != nil {
				who = fmt.Sprintf("%s %s", access.CallerKind(c.GetKind()), c.GetUser())
			}
			callers = append(callers, slices.Repeat([]string{who}, int(run.GetCommands()))...)
		}
		for i, command := range data.GetCommands() {
			who := "nobody"
			if len(callers) > 0 {
				who = callers[i]
			}
			what := fmt.Sprintf("%T", command.GetCommand())
			list = append(list, strings.TrimSpace(who)+": "+strings.TrimPrefix(what, "*logv1.Command_"))
		}
	}
	return list
}

// TestEntriesSayWhoAskedForThem: each command has the caller of its context, also if calls share entries; what the
// cluster proposes itself has the system.
func TestEntriesSayWhoAskedForThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, disks := startWithKnownDisks(t, 3)
		time.Sleep(time.Minute)
		c.CreateTree() // without a caller
		if _, _, err := c.Leader().Propose(evaContext(t), leaseRequest("lease", 10*time.Second)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		var group sync.WaitGroup
		for i := range 20 {
			ctx := t.Context()
			if i%2 == 0 {
				ctx = evaContext(t)
			}
			group.Go(func() {
				if _, _, err := c.Leader().ProposeBatched(ctx, quota.Release{ID: "lease"}); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		list := loggedCallers(t, disks[c.Leader().Status().ID])
		count := func(text string) int {
			return len(slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s != text }))
		}
		if count("external cert/eva: Allocate") != 1 || count("system: Expire") == 0 || count("nobody: Expire") != 0 ||
			count("external cert/eva: Release") != 10 || count("none: Release")+count("nobody: Release") != 10 {
			t.Errorf("the log has\n%s", strings.Join(list, "\n"))
		}
		c.AwaitConverged()
	})
}

// TestAnInvalidCallerIsRefused: nothing is written for a caller that no member could read.
func TestAnInvalidCallerIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 1)
		time.Sleep(time.Minute)
		c.CreateTree()
		before := c.Leader().Status().LastIndex
		ctx := cluster.WithCaller(t.Context(), &access.Caller{Kind: access.External, User: "eva"})
		_, _, err := c.Leader().Propose(ctx, clustertest.NewAllocate("a", 1), clustertest.NewAllocate("b", 1))
		if cluster.ReasonOf(err) != cluster.TooLarge || !strings.Contains(err.Error(), `"eva" is not a user`) {
			t.Errorf("answered %v", err)
		}
		if now := c.Leader().Status().LastIndex; now != before {
			t.Errorf("%d entries were written", now-before)
		}
	})
}

// TestARestoreBringsBackNoAccess: an empty cluster gets the access book of the backup without its tokens; one whose
// access was changed keeps its own, whatever the backup has.
func TestARestoreBringsBackNoAccess(t *testing.T) {
	guarded := goldenBackup(t, "../../fsm/testdata/snapshot-v1.bin")
	plain := goldenBackup(t, "../../fsm/testdata/snapshot-v1-open.bin")
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		if book := c.Leader().Book(); book.Revision() != 0 || book.Mode() != access.Open {
			t.Errorf("a new cluster has the access book %+v", book.State())
		}
		mustRestore(t, c, guarded)
		c.CheckEqual() // with snapshots
		mode, revision := c.Leader().Book().Mode(), c.Leader().Book().Revision()
		for _, n := range c.Nodes() {
			s := n.Book().State()
			if len(s.Accounts) == 0 || len(s.Tokens) != 0 || len(s.Refused) == 0 || len(s.Section.Bindings) == 0 ||
				s.Mode != access.Guarded {
				t.Errorf("%s has the access book %+v", n.Status().ID, s)
			}
		}
		mustRestore(t, c, plain)
		c.CheckEqual()
		for _, n := range c.Nodes() {
			if n.Book().Mode() != mode || n.Book().Revision() != revision || len(n.Book().State().Accounts) == 0 {
				t.Errorf("after a restore of an open state %s has the access book %+v", n.Status().ID, n.Book().State())
			}
		}
	})
}

func goldenBackup(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	machine := fsm.New(fsm.Options{})
	if err := machine.Restore(io.NopCloser(bytes.NewReader(data))); err != nil {
		t.Fatal(err)
	}
	state, err := machine.TakeSnapshot()
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	m := backup.Manifest{Cluster: "test", Node: "n1", Version: "test", Info: state.Info()}
	if _, err := backup.Write(&file, m, state); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}
