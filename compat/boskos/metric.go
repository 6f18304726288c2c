package boskos

import (
	"context"
	"encoding/json"
	"net/http"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// typeMetric counts free resources under the empty owner.
type typeMetric struct {
	Type    string           `json:"type"`
	Current map[string]int64 `json:"current"`
	Owners  map[string]int64 `json:"owner"`
}

func (s *server) handleMetric(r *http.Request) ([]byte, error) {
	rtype := r.URL.Query().Get("type")
	if rtype == "" {
		return nil, badRequest("Type must be set in the request.")
	}
	count, err := s.countItems(r.Context(), rtype)
	if err != nil {
		return nil, err
	}
	if len(count.GetStates()) == 0 {
		return nil, notAvailable(rtype)
	}
	return json.Marshal(typeMetric{rtype, nonNilMap(count.GetStates()), nonNilMap(count.GetOwners())})
}

// countItems is nil for an unknown type.
func (s *server) countItems(ctx context.Context, rtype string) (counted *quoratev1.ItemCount, err error) {
	err = s.layout.withLayout(ctx, func(l *layout) error {
		at, known := l.types[rtype]
		if !known {
			return errUnknown
		}
		found, err := s.api.Items.CountItems(ctx, &quoratev1.CountItemsRequest{Tree: at.tree, Resource: rtype})
		for _, count := range found.GetCounts() {
			counted = count
		}
		return err
	})
	if isUnknown(err) {
		return nil, nil //nolint:nilnil // an unknown type has nothing to count
	}
	return counted, err
}
