//go:build unix

package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
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
		Trees: trees, Actor: "quorate server dev", Reason: "the configuration of Boskos that was named at the start",
	})
	return err
}

// devFrontEnds are the front ends of each node. Clients of Boskos have the address of an entry at the first node, and
// the ports that follow at the others.
func devFrontEnds(entries []string, nodes int) ([][]string, error) {
	served, err := server.ParseFrontEnds(entries)
	if err != nil {
		return nil, err
	}
	lists := make([][]string, nodes)
	for _, name := range slices.Sorted(maps.Keys(served)) {
		address := served[name]
		for i := range lists {
			entry := name
			if address != "" {
				at, err := addressOfNode(address, i, nodes)
				if err != nil {
					return nil, fmt.Errorf("front-ends has \"%s=%s\": %w", name, address, err)
				}
				entry += "=" + at
			}
			lists[i] = append(lists[i], entry)
		}
	}
	return lists, nil
}

// addressOfNode has the port of the first node and the number of the node together, or port 0.
func addressOfNode(first string, node, nodes int) (string, error) {
	host, text, err := net.SplitHostPort(first)
	port, notNumber := strconv.Atoi(text)
	if err = errors.Join(err, notNumber); err != nil || port < 0 || port+nodes > 65536 {
		return "", errors.New("allowed is HOST:PORT, with a port for each node")
	}
	if port > 0 {
		port += node
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), nil
}
