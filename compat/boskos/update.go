package boskos

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

type userData map[string]string

// handleUpdate renews the lease, and merges user data over those of the item.
func (s *server) handleUpdate(r *http.Request) ([]byte, error) {
	q := r.URL.Query()
	name, owner, state := q.Get("name"), q.Get("owner"), q.Get("state")
	if name == "" || owner == "" || state == "" {
		return nil, badRequest("Name: %v, owner: %v, state : %v, all of them must be set in the request.",
			name, owner, state)
	}
	data, err := userDataOf(r.Body)
	if err != nil {
		return nil, err
	}
	err = s.withItem(r.Context(), name, owner, func(item *quoratev1.Item) error {
		if item.GetState() != state {
			return otherState(item.GetState(), state)
		}
		_, err := s.api.Allocations.Renew(r.Context(), &quoratev1.RenewRequest{
			Namespace: item.GetAllocation().GetNamespace(), Id: item.GetAllocation().GetId(), Fence: item.GetFence(),
			Items: []*quoratev1.ItemUpdate{{Item: item.GetName(), UserData: data}},
		})
		return err
	})
	if err != nil {
		return nil, wrapAnswer(err, "Update failed: %v - %v (%v)", name, state, owner)
	}
	return nil, nil
}

// userDataOf reads the first JSON value of a body; there may be none.
func userDataOf(body io.Reader) (userData, error) {
	var data userData
	err := json.NewDecoder(body).Decode(&data)
	if err == nil || errors.Is(err, io.EOF) {
		return data, nil
	}
	return nil, badRequest("%s", strings.ReplaceAll(err.Error(), "boskos.userData", "common.UserDataMap"))
}
