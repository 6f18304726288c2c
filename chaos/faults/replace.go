package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func replaceKinds() []Kind {
	kind := func(name, says string, d damageFunc) Kind {
		return Kind{
			Name: name, Description: says, Alone: true, skipInUpgrade: true, minHold: 0,
			maxHold: 3 * time.Second, newFault: replaceDisk(d),
		}
	}
	return []Kind{
		kind("lost-disk", "a node comes back with an empty folder",
			func(*rand.Rand, string) (string, error) { return "", nil }),
		kind("damaged-log", "bytes of a stopped node's log are changed or zeroed, or its end is cut off", damageLog),
		kind("damaged-snapshot",
			"bytes of a stopped node's newest snapshot are changed or zeroed, or its end is cut off", damageSnapshot),
	}
}

// damageFunc damages the data of a stopped node and describes the damage. An empty description means that the folder
// is to be emptied.
type damageFunc func(r *rand.Rand, dir string) (what string, err error)

// replaceDisk kills one node of a healthy cluster, waits until the others have all that it had, and damages its data.
// A node that refuses damaged data gets an empty folder, as its message demands.
//
// A voter that has lost its log has also forgotten which entries and which vote it has confirmed. That is safe only
// if no other node is behind at that moment and none is disturbed until it is back, so this kind is not mixed with
// others.
func replaceDisk(spoil damageFunc) func(*rand.Rand) (begin, end func(context.Context, *Target) error) {
	return func(r *rand.Rand) (begin, end func(context.Context, *Target) error) {
		p, seed, node := chooseNodeOrLeader(r), r.Uint64(), -1
		return func(ctx context.Context, t *Target) error {
				if err := t.AwaitHealthy(ctx, Patience); err != nil {
					return err
				}
				if node = t.reserveNode(ctx, p); node < 0 {
					return errNoFreeNode
				}
				n := t.Nodes[node]
				t.Note(node, "killed")
				if err := errors.Join(n.Kill(), t.awaitReplicated(ctx, node)); err != nil {
					return err
				}
				what, err := spoil(rand.New(rand.NewPCG(seed, 0)), n.Disk.Backing)
				if what == "" && err == nil {
					what, err = "the folder is emptied", n.Wipe()
				}
				t.Note(node, "%s", what)
				return err
			}, func(ctx context.Context, t *Target) error {
				defer t.releaseNode(node)
				return t.startOrEmpty(ctx, node)
			}
	}
}

// awaitReplicated waits until all other nodes have everything that was acknowledged before a node was killed and
// shortly after.
func (t *Target) awaitReplicated(ctx context.Context, without int) error {
	return retryUntil(ctx, Patience, func() error {
		lead := t.Leader(ctx)
		if lead < 0 {
			return errors.New("the others have no leader")
		}
		all := t.nodeStatuses(ctx)
		if all[lead] == nil {
			return errors.New("the leader does not answer")
		}
		for i, s := range all {
			if i != without && (s == nil || s.GetAppliedIndex() < all[lead].GetAppliedIndex() ||
				s.GetTerm() != all[lead].GetTerm()) {
				return fmt.Errorf("%s is behind", t.Nodes[i].ID)
			}
		}
		return nil
	})
}

// startOrEmpty starts a node and waits until it is healthy. A node that exits instead gets an empty folder and is
// started again.
func (t *Target) startOrEmpty(ctx context.Context, node int) error {
	n := t.Nodes[node]
	exits := len(n.Exits())
	if err := t.startNode(node); err != nil {
		return err
	}
	t.Note(node, "started")
	err := retryUntil(ctx, Patience, func() error {
		if n.Running() {
			return t.Healthy(ctx)
		}
		return nil
	})
	t.excuseExits(node, exits)
	if n.Running() || err != nil {
		return err
	}
	t.Note(node, "refused its data: %s", lastLine(n.Log()))
	if err := errors.Join(n.Wipe(), n.Start()); err != nil {
		return err
	}
	t.Note(node, "started with an empty folder")
	return t.AwaitHealthy(ctx, Patience)
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndex(text, "\n")+1:]
}

func damageLog(r *rand.Rand, dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "wal", "*"))
	if err != nil {
		return "", err
	}
	files = append(files, filepath.Join(dir, "raft.db"))
	return damageFile(r, files[r.IntN(len(files))])
}

func damageSnapshot(r *rand.Rand, dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "snapshots", "*", "state.bin"))
	if err != nil {
		return "", err
	}
	files = slices.DeleteFunc(files, func(path string) bool { return strings.Contains(path, ".tmp/") })
	if len(files) == 0 {
		return "it has no snapshot yet, so nothing is changed", nil
	}
	return damageFile(r, slices.MaxFunc(files, olderFile))
}

func olderFile(a, b string) int {
	one, err1 := os.Stat(a)
	two, err2 := os.Stat(b)
	if err1 != nil || err2 != nil {
		return strings.Compare(a, b)
	}
	return one.ModTime().Compare(two.ModTime())
}

// damageFile changes or zeroes bytes of a file, or cuts off its end.
func damageFile(r *rand.Rand, path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil || len(data) == 0 {
		return "", fmt.Errorf("damage %s: %w", path, errors.Join(err, errors.New("it is empty")))
	}
	var what string
	name := filepath.Base(path)
	// The end of a segment of the log is reserved and empty: damage there would show nothing.
	used := max(1, len(bytes.TrimRight(data, "\x00")))
	switch r.IntN(3) {
	case 0:
		data = data[:used/4+r.IntN(used/2+1)]
		what = fmt.Sprintf("%s ends early", name)
	case 1:
		from := r.IntN(used)
		to := min(len(data), from+512+r.IntN(1<<14))
		clear(data[from:to])
		what = fmt.Sprintf("%d bytes of %s are zero", to-from, name)
	default:
		for range 16 {
			data[r.IntN(used)] ^= byte(1 + r.IntN(255))
		}
		what = fmt.Sprintf("16 bytes of %s are changed", name)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return "", fmt.Errorf("damage %s: %w", path, err)
	}
	return what, nil
}
