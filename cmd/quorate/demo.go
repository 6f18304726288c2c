package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/examples"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/manifest"
)

func newDemoCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show a cluster at work, losing its leader and nothing else",
		Long: `Start three real servers on this machine, play the CERN example of nested quotas on them, kill the leader in the
middle, go on, bring it back, and stop everything. Every outcome is checked: the exit code is 0 only if each of them is
what it must be. Nothing is left behind.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runDemo(c.Context(), c.OutOrStdout()) },
	}
}

// runDemo plays the whole story in a folder of its own.
func runDemo(ctx context.Context, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "quorate-demo-")
	if err != nil {
		return fmt.Errorf("making a folder for the demo: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := &stage{show: newDemoPrinter(out)}
	s.show.line(s.show.paint(bold, "Quorate demo: three servers, one ledger, and a laboratory that shares 100 cores"))
	if s.cluster, err = startDemoCluster(ctx, dir, 3); s.cluster != nil {
		defer s.cluster.killAll()
	}
	if err != nil {
		return err
	}
	began := time.Now()
	if err := s.story(ctx, dir); err != nil {
		if ctx.Err() != nil {
			return errors.New("the demo was interrupted; its servers are stopped and its data is removed")
		}
		return fmt.Errorf("the demo went wrong: %w", err)
	}
	s.show.line(s.show.paint(green, fmt.Sprintf("\nAll %d steps came out as they must, in %.0f s.", len(demoScript), time.Since(began).Seconds())))
	return nil
}

func (s *stage) story(ctx context.Context, dir string) error {
	for _, act := range []func(context.Context) error{
		func(ctx context.Context) error { return s.gather(ctx, dir) }, s.load, s.script, s.finish,
	} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	return nil
}

// gather waits until the servers have found each other.
func (s *stage) gather(ctx context.Context, dir string) error {
	s.show.chapter("start n1, n2 and n3, each a process with a log on disk")
	for _, n := range s.cluster.nodes {
		s.show.fact("%s  http://%s  process %d", n.id, n.http, n.process.Process.Pid)
	}
	ctx, cancel := context.WithTimeout(ctx, demoPatience)
	defer cancel()
	began := time.Now()
	for _, n := range s.cluster.nodes {
		if err := n.ready(ctx); err != nil {
			return err
		}
	}
	leader, err := s.leader(ctx)
	if err != nil {
		return err
	}
	s.show.fact("ready after %.1f s; %s leads; data in %s", time.Since(began).Seconds(), leader.id, dir)
	return nil
}

// load applies the example and puts its first holders in place.
func (s *stage) load(ctx context.Context) error {
	s.show.chapter("load examples/cern.yaml and let the first jobs in")
	trees, err := manifest.Parse(examples.CERNName, examples.CERN)
	if err != nil {
		return err
	}
	via, err := s.ask(ctx, func(ctx context.Context, n *demoNode) error {
		_, err := n.trees.ApplyTrees(ctx, &quoratev1.ApplyTreesRequest{Trees: trees, Actor: "demo", Reason: "the CERN example", RequestId: "load"})
		return err
	})
	if err != nil {
		return fmt.Errorf("applying %s by %s: %w", examples.CERNName, via, err)
	}
	for _, m := range demoSeed {
		got, err := s.move(ctx, m)
		if err == nil {
			err = s.compare(ctx, m, got)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.text(), err)
		}
	}
	return s.showUsage(ctx)
}

func (s *stage) showUsage(ctx context.Context) error {
	nodes, err := s.usageTree(ctx)
	if err != nil {
		return err
	}
	return s.show.usage(nodes)
}

// script plays all steps; any node takes any call.
func (s *stage) script(ctx context.Context) error {
	s.show.chapter("play the script; each call goes to another server")
	var killed *demoNode
	for i, step := range demoScript {
		if err := s.play(ctx, i+1, step); err != nil {
			return err
		}
		if i+1 != killAfter {
			continue
		}
		var err error
		if killed, err = s.crash(ctx); err != nil {
			return err
		}
		s.show.chapter("go on with the script on the two that are left")
	}
	return s.comeback(ctx, killed)
}

// finish shows the end and stops the servers in an orderly way.
func (s *stage) finish(ctx context.Context) error {
	s.show.chapter("who holds what in the end")
	if err := s.showUsage(ctx); err != nil {
		return err
	}
	return s.cluster.stop()
}
