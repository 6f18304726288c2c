package keystone

import (
	"encoding/json"
	"fmt"
	"math"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat"
)

// documents is what a file may hold: bodies of the unified limits API and of the list of projects, put together.
type documents struct {
	Registered []json.RawMessage `json:"registered_limits"`
	Limits     []json.RawMessage `json:"limits"`
	Projects   []json.RawMessage `json:"projects"`
	Truncated  bool              `json:"truncated"`
}

// numbered is an entry of a list with its number there, from one.
type numbered[T any] struct {
	number int
	entry  T
}

// decodeEntries reads the entries of a list, each for itself, so that all that cannot be read are found in one go.
func decodeEntries[T any](c *converter, what string, list []json.RawMessage) []numbered[T] {
	var read []numbered[T]
	for i, text := range list {
		e := numbered[T]{number: i + 1}
		if err := json.Unmarshal(text, &e.entry); err != nil {
			c.problems.Add("%s %d: %s", what, e.number, compat.Unreadable(err))
			continue
		}
		read = append(read, e)
	}
	return read
}

type registeredLimit struct {
	Service     string          `json:"service_id"`
	Region      *string         `json:"region_id"`
	Resource    string          `json:"resource_name"`
	Default     json.RawMessage `json:"default_limit"`
	Description *string         `json:"description"`
}

type projectLimit struct {
	Project     *string         `json:"project_id"`
	Domain      *string         `json:"domain_id"`
	Service     string          `json:"service_id"`
	Region      *string         `json:"region_id"`
	Resource    string          `json:"resource_name"`
	Limit       json.RawMessage `json:"resource_limit"`
	Description *string         `json:"description"`
}

type project struct {
	ID       string  `json:"id"`
	Name     string  `json:"name"`
	Parent   *string `json:"parent_id"`
	Domain   *string `json:"domain_id"`
	IsDomain bool    `json:"is_domain"`
}

// limitOf reads a limit: -1 for none, 0 for nothing, up to 2^31-1.
func limitOf(text json.RawMessage) (*quoratev1.Limit, error) {
	var value int64
	err := json.Unmarshal(text, &value)
	switch {
	case err != nil || string(text) == "null" || value < unlimited || value > math.MaxInt32:
		return nil, fmt.Errorf("limit %.40q is not a whole number from -1 to %d", text, math.MaxInt32)
	case value == unlimited:
		return compat.NoLimit(), nil
	default:
		return compat.AtMost(value), nil
	}
}

// textOf is a text that may be null, which means the same as empty.
func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
