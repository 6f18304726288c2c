package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// cli is what all commands share: the streams, the global flags, and what was learnt from a server.
type cli struct {
	in        io.Reader
	out, talk io.Writer
	// version is what this binary was built from.
	version string

	servers []string
	timeout time.Duration
	output  string
	stale   bool
	tls     tlsOptions
	// minIndex is a log index that a stale answer must reflect; 0 for none.
	minIndex uint64

	patient bool  // the command waits for longer than its timeout
	started bool  // the command line was understood; what fails from here on is not a matter of usage
	units   units // of the resources that were met so far, for errors
}

// connect gives a client and the time that the command may take.
func (c *cli) connect(ctx context.Context) (*client.Client, context.Context, context.CancelFunc, error) {
	if c.timeout <= 0 {
		return nil, nil, nil, usagef("--timeout must be positive")
	}
	quorate, err := c.newClient()
	if err != nil {
		return nil, nil, nil, err
	}
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	return quorate, limited, cancel, nil
}

// newClient gives a client for the servers and certificates of the command line.
func (c *cli) newClient() (*client.Client, error) {
	options := []client.Option{client.WithNotice(c.notice()), client.WithPatience(c.timeout)}
	secure, err := c.tls.config()
	if err != nil {
		return nil, usagef("%v", err)
	}
	if secure != nil {
		options = append(options, client.WithTLS(secure))
	}
	quorate, err := client.New(c.servers, options...)
	if err != nil {
		return nil, usagef("%v", err)
	}
	return quorate, nil
}

// notice tells the person once that the command is waiting for a server, and why.
func (c *cli) notice() func(error) {
	var once sync.Once
	return func(err error) {
		span := ""
		if !c.patient {
			span = fmt.Sprintf(" for up to %v", c.timeout)
		}
		once.Do(func() { c.say("no answer yet, trying again%s: %s", span, sentence(err)) })
	}
}

// read says how fresh answers must be.
func (c *cli) read() *quoratev1.ReadOptions {
	if c.stale || c.minIndex > 0 {
		return &quoratev1.ReadOptions{Consistency: quoratev1.Consistency_CONSISTENCY_STALE, MinIndex: c.minIndex}
	}
	return nil
}

// say talks to the person, not to the program that reads the output.
func (c *cli) say(format string, args ...any) {
	fmt.Fprintf(c.talk, format+"\n", printableArgs(args, printableText)...) //nolint:errcheck // nobody is left to tell
}

// sayAge tells how old a stale answer may be.
func (c *cli) sayAge(read *quoratev1.ReadInfo) {
	if read.GetConsistency() == quoratev1.Consistency_CONSISTENCY_STALE {
		age := time.Duration(read.GetAgeMs()) * time.Millisecond
		c.say("stale: %s answered what it had applied up to index %d; it heard from the leader %v ago",
			read.GetServedBy(), read.GetIndex(), age)
	}
}

// learnForTable fetches the units if a table is to show them. It is no failure if that fails: amounts are shown in base
// units then.
func (c *cli) learnForTable(ctx context.Context, quorate *client.Client) {
	if c.output != outputTable {
		return
	}
	if err := c.learn(ctx, quorate); err != nil {
		c.say("amounts are in base units, since their units could not be read: %s", sentence(err))
	}
}

// learn fetches the units of all resources of all trees.
func (c *cli) learn(ctx context.Context, quorate *client.Client) error {
	answer, err := quorate.Trees.ListTrees(ctx, &quoratev1.ListTreesRequest{Read: c.read()})
	if err != nil {
		return err
	}
	c.units = units{}
	for _, tree := range answer.GetTrees() {
		c.units.add(tree.GetName(), tree.GetResources())
	}
	return nil
}
