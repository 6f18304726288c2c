package rest

import "net/http"

// links of a list or of one thing. They are relative to the host, which a proxy may have changed.
type links struct {
	Self     string  `json:"self"`
	Next     *string `json:"next,omitempty"`
	Previous *string `json:"previous,omitempty"`
}

func linkTo(kind, id string) links { return links{Self: root + "/" + kind + "/" + id} }

func listBody[T any](kind string, all []T) map[string]any {
	body := map[string]any{"links": map[string]any{"self": root + "/" + kind, "next": nil, "previous": nil}}
	if all == nil {
		all = []T{}
	}
	if len(all) > maxListed {
		all, body["truncated"] = all[:maxListed], true
	}
	body[kind] = all
	return body
}

type version struct {
	ID         string         `json:"id"`
	Status     string         `json:"status"`
	Updated    string         `json:"updated"`
	Links      []versionLink  `json:"links"`
	MediaTypes []versionMedia `json:"media-types"`
}

type versionLink struct {
	Rel  string `json:"rel"`
	Href string `json:"href"`
}

type versionMedia struct {
	Base string `json:"base"`
	Type string `json:"type"`
}

// served is the version of Keystone's API that the limits are of.
var served = version{
	ID: "v3.14", Status: "stable", Updated: "2020-04-07T00:00:00Z",
	Links:      []versionLink{{Rel: "self", Href: root + "/"}},
	MediaTypes: []versionMedia{{Base: "application/json", Type: "application/vnd.openstack.identity-v3+json"}},
}

func (s *server) listVersions(*http.Request) (int, any, error) {
	body := map[string]any{"versions": map[string]any{"values": []version{served}}}
	return http.StatusMultipleChoices, body, nil
}

func (s *server) showVersion(*http.Request) (int, any, error) {
	return http.StatusOK, map[string]any{"version": served}, nil
}

// showModel answers flat, the one model that oslo.limit enforces. What a project is told makes it hold for trees.
func (s *server) showModel(*http.Request) (int, any, error) {
	return http.StatusOK, map[string]any{"model": map[string]string{
		"name":        "flat",
		"description": "Each project is told a limit of its own, which keeps all limits of its tree.",
	}}, nil
}

func (s *server) refuseLogin(*http.Request) (int, any, error) {
	return 0, nil, newFailure(http.StatusUnauthorized, needsToken+" Tokens are not issued here: set auth_type to "+
		"admin_token, and token to an API token of the cluster.")
}
