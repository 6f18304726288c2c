package boskos

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// handleReset takes what was not renewed for long from its owners, all in one step, and answers who they were.
func (s *server) handleReset(r *http.Request) ([]byte, error) {
	q := r.URL.Query()
	rtype, state, dest, expire := q.Get("type"), q.Get("state"), q.Get("dest"), q.Get("expire")
	if rtype == "" || state == "" || expire == "" || dest == "" {
		return nil, badRequest("Type: %v, state: %v, expire: %v, dest: %v, all of them must be set in the request.",
			rtype, state, expire, dest)
	}
	idle, err := time.ParseDuration(expire)
	if err != nil {
		return nil, badRequest("%s", err)
	}
	owners, err := s.resetType(r.Context(), &quoratev1.ResetItemsRequest{
		Resource: rtype, State: state, IdleMs: wholeMs(idle), NewState: dest,
	})
	if err != nil {
		return nil, wrapAnswer(err, "could not reset states")
	}
	return json.Marshal(owners)
}

// wholeMs rounds up: what was idle for less than asked is not touched.
func wholeMs(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d > time.Duration(ms)*time.Millisecond {
		ms++
	}
	return ms
}

// resetType resets nothing for an unknown type.
func (s *server) resetType(ctx context.Context, request *quoratev1.ResetItemsRequest) (map[string]string, error) {
	owners := map[string]string{}
	err := s.layout.withLayout(ctx, func(l *layout) error {
		at, known := l.types[request.GetResource()]
		if !known {
			return errUnknown
		}
		request.Tree = at.tree
		done, err := s.api.Items.ResetItems(ctx, request)
		for _, item := range done.GetItems() {
			owners[item.GetName()] = item.GetOwner()
		}
		return err
	})
	if isUnknown(err) {
		return owners, nil
	}
	return owners, err
}
