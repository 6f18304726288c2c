package main_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/verify"
)

// snapshots are flags that make a server write snapshots often and keep a short log, so that it needs them.
var snapshots = []string{"--snapshot-every", "20", "--snapshot-check", "50ms", "--snapshot-trail", "5"}

var bolt = []string{"--log-store", "bolt"}

// TestDamagedDataIsNotServed damages the data folder of a stopped server. The server must refuse to start, report in
// one line what is damaged and what to do, and leave the folder unchanged.
func TestDamagedDataIsNotServed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		more   []string
		damage func(t *testing.T, dir string)
		says   string
	}{
		{"a truncated log", bolt, func(t *testing.T, dir string) {
			t.Helper()
			path := filepath.Join(dir, "raft.db")
			info, err := os.Stat(path)
			if err == nil {
				err = os.Truncate(path, info.Size()/2)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, "raft.db"},
		{"a changed byte in the log", bolt, func(t *testing.T, dir string) {
			t.Helper()
			replaceInFile(t, filepath.Join(dir, "raft.db"), "needle", "noodle")
		}, "log entry"},
		{"a changed byte in a segment of the log", nil, func(t *testing.T, dir string) {
			t.Helper()
			replaceInFile(t, filepath.Join(dir, "wal", "00000000000000000001-0000000000000000.wal"), "needle-7", "noodle-7")
		}, "00000000000000000001-0000000000000000.wal"},
		{"a removed segment", nil, func(t *testing.T, dir string) {
			t.Helper()
			if err := os.Remove(filepath.Join(dir, "wal", "00000000000000000001-0000000000000000.wal")); err != nil {
				t.Fatal(err)
			}
		}, "00000000000000000001-0000000000000000.wal"},
		{"an empty log", nil, func(t *testing.T, dir string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(dir, "raft.db"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "raft.db"},
		{"a truncated snapshot", snapshots, func(t *testing.T, dir string) {
			t.Helper()
			for _, path := range snapshotFiles(t, dir, "state.bin") {
				info, err := os.Stat(path)
				if err == nil {
					err = os.Truncate(path, info.Size()/2)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}, "snapshot"},
		{"a changed byte in the snapshot", snapshots, func(t *testing.T, dir string) {
			t.Helper()
			for _, path := range snapshotFiles(t, dir, "state.bin") {
				replaceInFile(t, path, "needle", "noodle")
			}
		}, "snapshot"},
		{"the identity is gone", nil, func(t *testing.T, dir string) {
			t.Helper()
			if err := os.Remove(filepath.Join(dir, "identity.json")); err != nil {
				t.Fatal(err)
			}
		}, "identity.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.HasPrefix(c.name, "a changed byte") {
				verify.Only(t)
			}
			t.Parallel()
			f := singleServer(t, c.more...)
			makeUsedFolder(t, f, slices.Equal(c.more, snapshots))
			c.damage(t, f.dir)
			end := startProcess(t, f.commandLine()...).awaitEnd(t)
			if end.code != 1 {
				t.Errorf("exit code %d", end.code)
			}
			last := end.stderr[strings.LastIndex(strings.TrimSpace(end.stderr), "\n")+1:] // raft may have logged before
			for _, says := range []string{"quorate: ", c.says, "server join again"} {
				if !strings.Contains(last, says) {
					t.Errorf("%q does not say %q", last, says)
				}
			}
		})
	}
}

// TestMissingPartIsReported removes one part of the data folder of the only server. The server must report it and not
// continue with the rest.
func TestMissingPartIsReported(t *testing.T) {
	t.Parallel()
	for part, says := range map[string]string{
		"raft.db":   "raft.db with its log, term and vote is gone, and identity.json is left",
		"snapshots": "and what came before it is gone",
		"wal":       "wal with its log is gone",
	} {
		t.Run(part, func(t *testing.T) {
			if part != "raft.db" {
				verify.Only(t)
			}
			t.Parallel()
			f := singleServer(t, snapshots...)
			makeUsedFolder(t, f, true)
			if err := os.RemoveAll(filepath.Join(f.dir, part)); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				server := startProcess(t, f.commandLine()...)
				awaitCondition(t, f.id+" does not say what is gone", func() bool {
					_, body := httpGet(t, f.baseURL()+"/readyz")
					return strings.Contains(body, says) &&
						strings.Contains(body, "it neither votes nor confirms anything")
				})
				server.stopCleanly(t)
			}
			if left, err := filepath.Glob(filepath.Join(f.dir, "set-aside-*")); err != nil || len(left) != 1 {
				t.Errorf("set aside: %v, %v; want one folder", left, err)
			}
		})
	}
}

// TestALogThatWasSetBackIsReported puts an earlier copy of wal/ into the data folder of the only server, as an operator
// who restores only the log. The server must report it instead of serving without the writes since, which are all there
// once the right log is back.
func TestALogThatWasSetBackIsReported(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	makeUsedFolder(t, f, false)
	wal, earlier, kept := filepath.Join(f.dir, "wal"), t.TempDir(), filepath.Join(t.TempDir(), "wal")
	if err := os.CopyFS(earlier, os.DirFS(wal)); err != nil {
		t.Fatal(err)
	}
	server := startServer(t, f)
	for i := range 20 {
		f.allocateEach(t, fmt.Sprint("precious-", i))
	}
	server.stopCleanly(t)
	if err := errors.Join(os.CopyFS(kept, os.DirFS(wal)), os.RemoveAll(wal),
		os.CopyFS(wal, os.DirFS(earlier))); err != nil {
		t.Fatal(err)
	}
	server = startProcess(t, f.commandLine()...)
	awaitCondition(t, f.id+" does not say what was set back", func() bool {
		_, body := httpGet(t, f.baseURL()+"/readyz")
		return strings.Contains(body, "wal was set back to an earlier copy") &&
			strings.Contains(body, "it neither votes nor confirms anything")
	})
	server.stopCleanly(t)

	// As docs/operations.md says for a part that was found.
	aside := filepath.Join(f.dir, "set-aside-1")
	err := errors.Join(os.RemoveAll(wal), os.RemoveAll(filepath.Join(f.dir, "snapshots")),
		os.Rename(filepath.Join(aside, "raft.db"), filepath.Join(f.dir, "raft.db")), os.Rename(kept, wal),
		os.WriteFile(filepath.Join(f.dir, "identity.json"), []byte(`{"id": "`+f.id+`", "cluster": "quorate", "format": 1}`), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	server = startServer(t, f)
	if used := f.usedCores(t); used != 60 {
		t.Errorf("%d cores are held, want the 60 that were acknowledged", used)
	}
	server.stopCleanly(t)
}

// makeUsedFolder leaves data in the log and, if asked, in a snapshot.
func makeUsedFolder(t *testing.T, f serverFlags, snapshot bool) {
	t.Helper()
	server := startServer(t, f)
	f.applyTree(t)
	for i := range 40 {
		f.allocateEach(t, fmt.Sprint("needle-", i))
	}
	if snapshot {
		for deadline := time.Now().Add(patience); len(snapshotFiles(t, f.dir, "state.bin")) == 0; time.Sleep(
			20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("there is no snapshot")
			}
		}
	}
	server.stopCleanly(t)
}

func snapshotFiles(t *testing.T, dir, name string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "snapshots", "*", name))
	if err != nil {
		t.Fatal(err)
	}
	var whole []string
	for _, file := range files {
		if !strings.Contains(file, ".tmp/") {
			whole = append(whole, file)
		}
	}
	return whole
}

func replaceInFile(t *testing.T, path, from, to string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.ReplaceAll(string(text), from, to)
	if changed == string(text) {
		t.Fatalf("there is no %q in %s", from, path)
	}
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestServerComesBackFromItsSnapshot(t *testing.T) {
	t.Parallel()
	f := singleServer(t, snapshots...)
	makeUsedFolder(t, f, true)
	server := startServer(t, f)
	if used := f.usedCores(t); used != 40 {
		t.Errorf("%d cores are held, want 40", used)
	}
	again, err := f.allocationClient().Allocate(t.Context(), oneClaim("needle-0", 1))
	if err != nil || !again.GetWrite().GetRepetition() {
		t.Errorf("a retry after the restart: %v, %v", again, err)
	}
	server.stopCleanly(t)
}

// TestFullDisk fills the disk of a server. The server stops with the reason, and after the disk is enlarged it still
// has everything that it acknowledged.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for logStore, size := range map[string]string{"bolt": "4m", "wal": "20m"} { // one segment, and no second one
		t.Run(logStore, func(t *testing.T) {
			if logStore == "wal" {
				verify.Only(t) // a disk that is full at once is tested in package walstore
			}
			t.Parallel()
			fillSmallDisk(t, singleServer(t, "--disk-reserve", "0", "--log-store", logStore), size)
		})
	}
}

func fillSmallDisk(t *testing.T, f serverFlags, size string) {
	t.Helper()
	startServer(t, f).stopCleanly(t) // creates the files while there is space
	server := startCommand(t, smallDisk(t, &f, size))
	awaitReady(t, server, f)
	tree := smallTree()
	tree.Limits["cores"] = &quoratev1.Limit{Value: &quoratev1.Limit_Amount{Amount: 10_000}} // of its nodes too
	if _, err := f.treeClient().ApplyTrees(t.Context(),
		&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{tree}}); err != nil {
		t.Fatal(err)
	}
	acknowledged := 0
	for i := 0; server.isRunning() && i < 10_000; i++ {
		if f.fillDisk(t, i) {
			acknowledged++
		}
	}
	end := server.awaitEnd(t)
	if end.code != 1 || !strings.Contains(end.stderr, "quorate: node n1 had to stop") || acknowledged == 0 {
		t.Fatalf("after %d grants exit code %d\n%s", acknowledged, end.code, end.stderr)
	}
	t.Log(end.stderr)
	f.moreRoom(t)
	server = startServer(t, f)
	if used := f.usedCores(t); used < int64(acknowledged) {
		t.Errorf("%d cores are held, want the %d that were acknowledged", used, acknowledged)
	}
	f.allocateEach(t, "after")
	server.stopCleanly(t)
}

func (f serverFlags) fillDisk(t *testing.T, i int) bool {
	t.Helper()
	r := oneClaim(fmt.Sprint("fill-", i), 1)
	r.Labels = map[string]string{}
	for l := range 32 {
		r.Labels[fmt.Sprintf("label-%d", l)] = strings.Repeat("x", 256)
	}
	_, err := f.allocationClient().Allocate(withTimeout(t, 5*time.Second), r)
	if err == nil {
		return true
	}
	// A broken connection is reported as unavailable, or by this library as canceled.
	switch connect.CodeOf(err) { //nolint:exhaustive // all others are wrong here
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded, connect.CodeCanceled:
	default:
		t.Errorf("grant %d: %v", i, err)
	}
	if p, ok := errorDetail[*quoratev1.Problem](err); ok && p.GetNotApplied() && p.GetReason() == "LEADERSHIP_LOST" {
		t.Errorf("grant %d: no server can know that it was not applied: %v", i, err)
	}
	return false
}

// smallDisk mounts a disk of its own if the test may do that, and otherwise limits the size of files, which makes the
// same writes fail.
func smallDisk(t *testing.T, f *serverFlags, size string) *exec.Cmd {
	t.Helper()
	disk := t.TempDir()
	if err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", disk).Run(); err == nil {
		t.Cleanup(func() {
			if out, err := exec.Command("umount", disk).CombinedOutput(); err != nil {
				t.Errorf("unmounting: %v %s", err, out)
			}
		})
		f.dir = filepath.Join(disk, "data")
		return exec.Command(binary, f.commandLine()...)
	}
	t.Log("no disk can be mounted here; the size of files is limited instead")
	return exec.Command("bash", append([]string{"-c", `ulimit -f 4096; exec "$0" "$@"`, binary}, f.commandLine()...)...)
}

// moreRoom does nothing if no disk was mounted.
func (f serverFlags) moreRoom(t *testing.T) {
	t.Helper()
	disk := filepath.Dir(f.dir)
	if out, err := exec.Command("mount", "-o", "remount,size=128m", disk).CombinedOutput(); err != nil {
		t.Logf("there is no disk to enlarge: %v %s", err, out)
	}
}
