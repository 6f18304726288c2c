package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// Following says whether a command shows its answer again whenever it may have changed, and when that is.
type Following struct {
	On bool
	// Trees are those that the answer is about; empty for all, or if it is not about trees.
	Trees []string
	// Concerns is true for a message after which the answer may differ.
	Concerns func(*quoratev1.WatchChangesResponse) bool
}

// AddFlag adds --watch.
func (f *Following) AddFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.On, "watch", false, "show it again whenever it may have changed, until interrupted")
}

// redrawPause is how long a table stays at least, so that it can be read and costs the servers little.
const redrawPause = 500 * time.Millisecond

// RunOrFollow calls show once, or with --watch again and again until the command is interrupted.
func (c *Env) RunOrFollow(ctx context.Context, f Following, show func(context.Context, *client.Client) error) error {
	if !f.On {
		quorate, ctx, cancel, err := c.Connect(ctx)
		if err != nil {
			return err
		}
		defer cancel()
		return show(ctx, quorate)
	}
	if c.Output != OutputTable && c.Output != OutputWide {
		return Usagef("--watch shows tables; a program calls WatchChanges and reads again")
	}
	if c.Timeout <= 0 {
		return Usagef("--timeout must be positive")
	}
	return (&follower{Env: c, Following: f, show: show, reports: &linkReports{out: c.ErrOut}, out: c.Out}).run(ctx)
}

// follower shows an answer again and again.
type follower struct {
	*Env
	Following
	show    func(context.Context, *client.Client) error
	reports *linkReports
	out     io.Writer
	// shown and said are what was last written to standard output and standard error.
	shown, said []byte
	hasShown    bool
}

func (f *follower) run(ctx context.Context) error {
	f.following = true
	quorate, err := f.NewClient(client.WithNotice(f.reports.noteFailure))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed, ended := make(chan *quoratev1.WatchChangesResponse, 1), make(chan error, 1)
	go func() {
		ended <- FollowLatest(ctx, quorate, &quoratev1.WatchChangesRequest{Trees: f.Trees}, changed, f.concerns)
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			if ctx.Err() != nil {
				return nil
			}
			return err
		case m := <-changed:
			f.MinIndex = m.GetIndex()
			if err := f.redraw(ctx, quorate); err != nil {
				return err
			}
		}
		select {
		case <-time.After(redrawPause):
		case <-ctx.Done():
		}
	}
}

func (f *follower) concerns(m *quoratev1.WatchChangesResponse) bool {
	f.reports.noteAnswer(m)
	return m.GetEverything() || m.GetConfiguration() || f.Concerns(m)
}

// FollowLatest puts the latest message of WatchChanges into a channel of one, if it is the first or one that concerns
// the caller, until the context ends.
func FollowLatest(
	ctx context.Context, quorate *client.Client, request *quoratev1.WatchChangesRequest,
	latest chan *quoratev1.WatchChangesResponse, concerns func(*quoratev1.WatchChangesResponse) bool,
) error {
	isFirst := true
	return quorate.WatchChanges(ctx, request, func(m *quoratev1.WatchChangesResponse) error {
		if isConcerned := concerns(m); !isConcerned && !isFirst {
			return nil
		}
		isFirst = false
		select {
		case <-latest: // an earlier one
		default:
		}
		latest <- m
		return nil
	})
}

// redraw shows the answer if it differs. Only the first failure ends the command: a later one is reported, and the
// next change tries again.
func (f *follower) redraw(ctx context.Context, quorate *client.Client) error {
	var shown, said bytes.Buffer
	limited, cancel := context.WithTimeout(ctx, f.Timeout)
	defer cancel()
	errOut := f.ErrOut
	f.Out, f.ErrOut = &shown, &said
	err := f.show(limited, quorate)
	f.Out, f.ErrOut = f.out, errOut
	if code := (*ExitError)(nil); errors.As(err, &code) {
		err = nil // that there is no leader is a part of the answer
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil && !f.hasShown:
		return err
	case err != nil:
		f.reports.noteFailure(err)
		return nil
	}
	return f.write(shown.Bytes(), said.Bytes())
}

func (f *follower) write(shown, said []byte) error {
	if !bytes.Equal(said, f.said) || IsInteractive(f.out) {
		f.reports.write(said)
	}
	before, isSame := f.hasShown, bytes.Equal(shown, f.shown)
	f.shown, f.said, f.hasShown = shown, said, true
	switch {
	case isSame && before:
		return nil
	case IsInteractive(f.out):
		shown = append([]byte("\x1b[H\x1b[2J"), shown...)
	case before:
		shown = append([]byte("\n"), shown...)
	}
	if _, err := f.out.Write(shown); err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	return nil
}

// linkReports tells on standard error when servers cease to answer or know no leader, and when they do again. It is
// safe for concurrent use.
type linkReports struct {
	mu             sync.Mutex
	out            io.Writer
	isAway, leader bool
	heard          bool
}

func (r *linkReports) noteFailure(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isAway {
		r.printf("no server answers, trying again; what is shown may be old: %s", ErrorText(err))
	}
	r.isAway = true
}

func (r *linkReports) noteAnswer(m *quoratev1.WatchChangesResponse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isAway {
		r.printf("%s answers", m.GetServedBy())
	}
	switch known := m.GetLeaderKnown(); {
	case !known && (r.leader || !r.heard):
		r.printf("%s knows no leader; what is shown may be old", m.GetServedBy())
	case known && !r.leader && r.heard:
		r.printf("%s knows a leader again", m.GetServedBy())
	}
	r.isAway, r.leader, r.heard = false, m.GetLeaderKnown(), true
}

// printf needs the lock to be held.
func (r *linkReports) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(r.out, format+"\n", printableArgs(args, printableText)...) // a failure cannot be reported
}

func (r *linkReports) write(text []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = r.out.Write(text)
}
