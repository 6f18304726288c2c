//go:build unix

package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/compat/boskos"
	"github.com/quorate/quorate/internal/server"
)

// readBoskos converts the configuration of Boskos before any node is started.
func (o devOptions) readBoskos(notes io.Writer) ([]*quoratev1.Tree, error) {
	if o.boskosConfig == "" {
		return nil, nil
	}
	text, err := os.ReadFile(o.boskosConfig)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	conversion, err := boskos.Convert(text)
	if err != nil {
		return nil, cli.Usagef("%s", cli.PrefixLines(o.boskosConfig, err))
	}
	(&cli.Env{ErrOut: notes}).PrintNotes(o.boskosConfig, conversion.Notes)
	return conversion.Trees, nil
}

func applyBoskos(ctx context.Context, running []*server.Server, trees []*quoratev1.Tree) error {
	if len(trees) == 0 {
		return nil
	}
	quorate, err := client.New([]string{running[0].URL()})
	if err != nil {
		return err
	}
	_, err = quorate.Trees.ApplyTrees(ctx, &quoratev1.ApplyTreesRequest{
		Trees: trees, Actor: "quorate dev", Reason: "the configuration of Boskos that was named at the start",
	})
	return err
}

// boskosAddresses are the addresses of all nodes: that of the first one, and the following ports.
func boskosAddresses(first string, nodes int) ([]string, error) {
	addresses := make([]string, nodes)
	if first == "" {
		return addresses, nil
	}
	host, text, err := net.SplitHostPort(first)
	port, notNumber := strconv.Atoi(text)
	if err = errors.Join(err, notNumber); err != nil || port < 0 || port+nodes > 65536 {
		return nil, fmt.Errorf("boskos-addr is %q: allowed is host:port", first)
	}
	for i := range addresses {
		addresses[i] = first
		if port > 0 {
			addresses[i] = net.JoinHostPort(host, strconv.Itoa(port+i))
		}
	}
	return addresses, nil
}
