package request

import (
	"time"

	"github.com/spf13/cobra"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// Bounds of the API for leases and waiting.
const (
	longestTTL   = 7 * 24 * time.Hour
	longestWait  = 7 * 24 * time.Hour
	longestFor   = 366 * 24 * time.Hour
	shortestKeep = time.Second
	longestKeep  = time.Hour
	defaultKeep  = 2 * time.Minute
)

// LeaseOptions are the flags about the TTL of a lease and about waiting.
type LeaseOptions struct {
	TTL, Wait, Keep, For time.Duration
	data                 []string
}

// AddFlags adds the flags; ttl is the default of --ttl, 0 for none.
func (o *LeaseOptions) AddFlags(cmd *cobra.Command, ttl time.Duration) {
	flags := cmd.Flags()
	cli.SpanVar(flags, &o.TTL, "ttl", ttl, "make it a lease that ends unless it is renewed in this time, up to 7d "+
		"(default: the setting of the tree)")
	if ttl > 0 {
		flags.Lookup("ttl").Usage = "the lease ends unless it is renewed in this time, up to 7d"
	}
	cli.SpanVar(flags, &o.Wait, "wait", 0, "wait in the queue for at most this time if it does not fit now, up to 7d")
	cli.SpanVar(flags, &o.Keep, "keep", 0, "keep the place in the queue for this time after the last call, 1s to 1h "+
		"(default 2m)")
	cli.SpanVar(flags, &o.For, "for", 0, "declare that it ends after this time at the latest, up to 366d; renewals do "+
		"not extend it, and the queue can be predicted")
	flags.StringArrayVar(&o.data, "data", nil, "`NAME=VALUE` that the lease carries for its holder; may be repeated")
}

// CheckSpans checks the flags before a server is asked.
func (o *LeaseOptions) CheckSpans() error {
	whole := func(d time.Duration) bool { return d%time.Millisecond == 0 }
	switch {
	case o.TTL < 0 || o.TTL > longestTTL || !whole(o.TTL):
		return cli.Usagef("--ttl must be between 1ms and 7d, not %s", cli.FormatSpan(o.TTL))
	case o.Wait < 0 || o.Wait > longestWait || !whole(o.Wait):
		return cli.Usagef("--wait must be between 1ms and 7d, not %s", cli.FormatSpan(o.Wait))
	case o.Keep != 0 && (o.Keep < shortestKeep || o.Keep > longestKeep || !whole(o.Keep)):
		return cli.Usagef("--keep must be between 1s and 1h, not %s", cli.FormatSpan(o.Keep))
	case o.For < 0 || o.For > longestFor || !whole(o.For):
		return cli.Usagef("--for must be between 1ms and 366d, not %s", cli.FormatSpan(o.For))
	case o.Keep != 0 && o.Wait == 0:
		return cli.Usagef("--keep needs --wait")
	}
	_, err := ParsePairs("--data", o.data)
	return err
}

// ApplyTo sets the fields of a request.
func (o *LeaseOptions) ApplyTo(request *quoratev1.AllocateRequest) error {
	data, err := ParsePairs("--data", o.data)
	if err != nil {
		return err
	}
	request.TtlMs, request.UserData, request.ForMs = o.TTL.Milliseconds(), data, o.For.Milliseconds()
	if o.Wait > 0 {
		request.Mode, request.WaitMs, request.KeepMs = quoratev1.Mode_MODE_WAIT, new(o.Wait.Milliseconds()),
			o.Keep.Milliseconds()
	}
	return nil
}
