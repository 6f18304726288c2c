// Package top is "quorate top": a screen of what is full, what waits and what ends soon, which follows the cluster.
//
// fetch.go reads a snapshot from a server whenever WatchChanges says that something may have changed. model.go keeps
// what is selected, and view.go draws it.
package top

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// NewTopCmd makes the command.
func NewTopCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "top",
		Short: "Follow full nodes, waiting requests and ending leases on one screen",
		Long: `Follow the cluster on one screen of a terminal: the fullest nodes of each tree with their use of the limit,
requests that wait, oldest first, leases that end soon, and the cluster in one line. It reads from any server, works
without a leader, and goes on while servers are away.

  Tab, Shift-Tab   go to the next or previous pane
  Up, Down         select a row
  Enter            open the tree of the selected node; Esc goes back
  /                show only rows with a text; Esc shows all
  ?                show the keys
  q, Ctrl-C        quit

With the environment variable NO_COLOR it uses no colours.`,
		Example: `  quorate top
  quorate top --server http://10.0.0.1:7101,http://10.0.0.2:7101`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), c) },
	}
}

// pause is how long a snapshot is shown at least, so that the screen costs the servers little.
const pause = time.Second

func run(ctx context.Context, c *cli.Env) error {
	if !cli.IsTerminal(c.In) || !cli.IsTerminal(c.Out) {
		return cli.Usagef("top needs a terminal; quorate usage TREE --watch follows a tree without one")
	}
	if c.Timeout <= 0 {
		return cli.Usagef("--timeout must be positive")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	program := tea.NewProgram(newModel(os.Getenv("NO_COLOR") == ""), tea.WithContext(ctx), tea.WithInput(c.In),
		tea.WithOutput(c.Out), tea.WithoutSignalHandler())
	quorate, err := c.NewClient(client.WithNotice(func(err error) { program.Send(linkMsg(cli.ErrorText(err))) }))
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		ended <- follow(ctx, c, quorate, program.Send)
		program.Quit()
	}()
	_, err = program.Run()
	if ctx.Err() != nil {
		return nil // interrupted
	}
	cancel()
	if failed := <-ended; err == nil && !errors.Is(failed, context.Canceled) {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("top: %w", err)
	}
	return nil
}

// follow sends a snapshot for each change until the context ends, or a server refuses to tell of changes.
func follow(ctx context.Context, c *cli.Env, quorate *client.Client, send func(tea.Msg)) error {
	latest, ended := make(chan *quoratev1.WatchChangesResponse, 1), make(chan error, 1)
	go func() {
		ended <- cli.FollowLatest(ctx, quorate, &quoratev1.WatchChangesRequest{}, latest,
			func(*quoratev1.WatchChangesResponse) bool { return true })
	}()
	c.Units = cli.Units{}
	for {
		select {
		case err := <-ended:
			return err
		case m := <-latest:
			f := fetcher{client: quorate, units: c.Units, now: m, timeout: c.Timeout, idText: idText(c)}
			send(snapshotMsg(f.fetch(ctx)))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

func idText(c *cli.Env) func(*quoratev1.Allocation) string {
	return func(a *quoratev1.Allocation) string { return c.IDText(a) }
}
