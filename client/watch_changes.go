package client

import (
	"context"
	"math"

	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// WatchChanges calls report with what may have changed, heartbeats included, until the context ends or report returns
// an error, which WatchChanges then returns. Read what is shown again with consistency stale and the index of the
// message as min_index. The first message comes at once. If a server fails, WatchChanges continues at the next one
// after the last index, for as long as it takes; [WithNotice] is told of each stream that has ended. Other errors are
// refusals of a server, such as unimplemented from one of an earlier version.
func (c *Client) WatchChanges(
	ctx context.Context, request *quoratev1.WatchChangesRequest, report func(*quoratev1.WatchChangesResponse) error,
) error {
	w := &changeWatch{
		streamReader: streamReader{client: c, notice: c.notice, patience: math.MaxInt64},
		from:         proto.CloneOf(request), report: report,
	}
	w.readStream = w.readMessages
	return w.readStreams(ctx)
}

type changeWatch struct {
	streamReader
	from   *quoratev1.WatchChangesRequest
	report func(*quoratev1.WatchChangesResponse) error
}

func (w *changeWatch) readMessages(ctx context.Context, alive func()) error {
	stream, err := w.client.Changes.WatchChanges(ctx, w.from)
	if err != nil {
		return err
	}
	defer stream.Close() //nolint:errcheck // it was read to its end, or is given up
	for stream.Receive() {
		alive()
		m := stream.Msg()
		if w.reportErr = w.report(m); w.reportErr != nil {
			return w.reportErr
		}
		if m.GetEverything() || m.GetIndex() > w.from.GetAfterIndex() { // a server that is behind has a lower index
			w.from.AfterIndex = m.GetIndex()
		}
	}
	return stream.Err()
}
