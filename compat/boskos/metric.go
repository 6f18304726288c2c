package boskos

import (
	"context"
	"encoding/json"
	"net/http"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// typeMetric is how many resources of a type there are in each state, and with each owner; nobody is the empty owner.
type typeMetric struct {
	Type    string           `json:"type"`
	Current map[string]int64 `json:"current"`
	Owners  map[string]int64 `json:"owner"`
}

func (s *server) metric(r *http.Request) ([]byte, error) {
	rtype := r.URL.Query().Get("type")
	if rtype == "" {
		return nil, badRequest("Type must be set in the request.")
	}
	count, err := s.count(r.Context(), rtype)
	if err != nil {
		return nil, err
	}
	if len(count.GetStates()) == 0 {
		return nil, notAvailable(rtype)
	}
	return json.Marshal(typeMetric{rtype, filled(count.GetStates()), filled(count.GetOwners())})
}

// count is nil for an unknown type.
func (s *server) count(ctx context.Context, rtype string) (counted *quoratev1.ItemCount, err error) {
	err = s.layout.look(ctx, func(l *layout) error {
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
