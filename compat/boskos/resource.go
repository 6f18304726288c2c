package boskos

import (
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// decisionType is the type of the detail that every denial carries.
var decisionType = string((*quoratev1.Decision)(nil).ProtoReflect().Descriptor().FullName())

type resource struct {
	Type           string            `json:"type"`
	Name           string            `json:"name"`
	State          string            `json:"state"`
	Owner          string            `json:"owner"`
	LastUpdate     time.Time         `json:"lastupdate"`
	UserData       map[string]string `json:"userdata"`
	ExpirationDate *time.Time        `json:"expiration-date,omitempty"`
}

func resourcesOf(a *quoratev1.Allocation) []*resource {
	var all []*resource
	for _, claim := range a.GetClaims() {
		for _, item := range claim.GetItems() {
			all = append(all, &resource{
				Type: item.GetResource(), Name: item.GetName(), State: item.GetState(),
				Owner:      a.GetPrincipal().GetUser(),
				LastUpdate: item.GetUpdatedAt().AsTime(), UserData: nonNilMap(item.GetUserData()),
			})
		}
	}
	return all
}

func (r *resource) noteExpiry(item *quoratev1.Item) {
	if at := item.GetExpiresAt(); at != nil {
		r.ExpirationDate = new(at.AsTime())
	}
}

// nonNilMap makes an empty map be written as {}.
func nonNilMap[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}
