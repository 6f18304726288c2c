package request

import (
	"context"
	"fmt"
	"io"
	"os"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/compat"
	"github.com/quorate/quorate/compat/quotamanager"
)

// fromQuotaManager is the one format of other systems that describes a request.
const fromQuotaManager = "quota-manager"

func (o *allocateOptions) checkFile() error {
	switch {
	case o.from == "" && o.file != "":
		return cli.Usagef("%s is a file without a format: write --from %s", o.file, fromQuotaManager)
	case o.from == "":
		return o.CheckClaims()
	case o.from != fromQuotaManager:
		return cli.Usagef("there is no format %q for requests; there is: %s", o.from, fromQuotaManager)
	case o.file == "":
		return cli.Usagef("name the file of the request: --from %s FILE, or - for standard input", o.from)
	case len(o.Claims.List) > 0:
		return cli.Usagef("--at cannot be combined with --from: the file says what to allocate, and where")
	case o.priority != 0 || o.kind != 0 || o.unpreemptable:
		return cli.Usagef("--priority, --type and --unpreemptable cannot be combined with --from: the file has them for " +
			"each tree")
	}
	return nil
}

// buildFromFile makes the request that a Consumer document of the quota-manager describes.
func (o *allocateOptions) buildFromFile(
	ctx context.Context, quorate *client.Client,
) (*quoratev1.AllocateRequest, error) {
	name, text, err := o.readFile()
	if err != nil {
		return nil, err
	}
	consumer, err := quotamanager.ParseConsumer(text)
	if err != nil {
		return nil, cli.Usagef("%s", cli.PrefixLines(name, err))
	}
	var trees []*quoratev1.Tree
	for _, t := range consumer.Trees {
		tree, err := findTree(ctx, quorate, t.Tree)
		if err != nil {
			return nil, err
		}
		if tree != nil {
			trees = append(trees, tree)
		}
	}
	fromFile, err := consumer.Request(trees)
	if err != nil {
		return nil, cli.Usagef("%s", cli.PrefixLines(name, err))
	}
	request, err := o.BuildMessage(ctx, o.Env, quorate)
	if err != nil {
		return nil, err
	}
	request.Claims = fromFile.GetClaims()
	if o.id == "" {
		request.Id = fromFile.GetId()
	}
	return request, nil
}

// findTree reads a tree by the name that it has in the file; nil if there is none, which the caller reports with all
// other problems of the file.
func findTree(ctx context.Context, quorate *client.Client, original string) (*quoratev1.Tree, error) {
	name, err := compat.Name(original)
	if err != nil {
		return nil, nil //nolint:nilnil,nilerr // no tree has such a name
	}
	answer, err := quorate.Trees.GetTree(ctx, &quoratev1.GetTreeRequest{Name: name})
	if connect.CodeOf(err) == connect.CodeNotFound {
		return nil, nil //nolint:nilnil // the caller reports it
	}
	return answer.GetTree(), err
}

// readFile returns the text of the file, and its name for messages. It reads one byte more than a document may have, so
// that the parser refuses a longer one.
func (o *allocateOptions) readFile() (name string, text []byte, err error) {
	name, in := "standard input", o.In
	if o.file != "-" {
		opened, err := os.Open(o.file)
		if err != nil {
			return "", nil, fmt.Errorf("read the request: %w", err)
		}
		defer opened.Close() //nolint:errcheck // it was only read
		name, in = o.file, opened
	}
	if text, err = io.ReadAll(io.LimitReader(in, compat.MaxSize+1)); err != nil {
		return "", nil, fmt.Errorf("read the request: %w", err)
	}
	return name, text, nil
}
