package rest

import (
	"net/http"
	"slices"
	"strings"
)

// serviceBody shows a tree as a service.
type serviceBody struct {
	ID          string  `json:"id"`
	Name        string  `json:"name"`
	Type        string  `json:"type"`
	Enabled     bool    `json:"enabled"`
	Description *string `json:"description"`
	Links       links   `json:"links"`
}

// services shows trees of one service in several regions as one.
func services(v *view) []serviceBody {
	var all []serviceBody
	for _, t := range v.visible {
		if !slices.ContainsFunc(all, func(s serviceBody) bool { return s.ID == t.service }) {
			all = append(all, serviceBody{t.service, t.serviceName, t.serviceType, true, nil, linkTo("services", t.service)})
		}
	}
	return all
}

func (s *server) listServices(r *http.Request) (int, any, error) {
	f := filter{r.URL.Query()}
	return listMatching(s, r, "services", services, func(b serviceBody) bool {
		return f.allows("name", b.Name) && f.allows("type", b.Type)
	})
}

func (s *server) showService(r *http.Request) (int, any, error) {
	return showOne(s, r, "service", services, func(b serviceBody) string { return b.ID })
}

// endpointBody shows a tree and a region of its resources.
type endpointBody struct {
	ID        string  `json:"id"`
	Service   string  `json:"service_id"`
	Region    *string `json:"region"`
	RegionID  *string `json:"region_id"`
	Interface string  `json:"interface"`
	URL       string  `json:"url"`
	Enabled   bool    `json:"enabled"`
	Links     links   `json:"links"`
}

// endpoints are those of the trees that the caller sees: for each tree one with the id of its label, and one with
// ":REGION" after that for each other region of its resources.
func endpoints(v *view) []endpointBody {
	var all []endpointBody
	for _, t := range v.visible {
		others := slices.DeleteFunc(t.regions(), func(region string) bool { return region == t.region })
		for _, region := range append([]string{t.region}, others...) {
			id := t.endpoint
			if region != t.region {
				id += ":" + region
			}
			all = append(all, endpointBody{
				ID: id, Service: t.service, Region: orNull(region), RegionID: orNull(region), Interface: "public",
				Enabled: true, Links: linkTo("endpoints", id),
			})
		}
	}
	return all
}

// listEndpoints lists endpoints under the interface that is asked for: there is no difference here.
func (s *server) listEndpoints(r *http.Request) (int, any, error) {
	f := filter{r.URL.Query()}
	asked := strings.TrimSuffix(f.query.Get("interface"), "URL")
	all := func(v *view) []endpointBody {
		list := endpoints(v)
		for i := range list {
			if slices.Contains([]string{"internal", "admin"}, asked) {
				list[i].Interface = asked
			}
		}
		return list
	}
	return listMatching(s, r, "endpoints", all, func(b endpointBody) bool {
		return f.allows("service_id", b.Service) && f.allows("region_id", textOf(b.RegionID)) &&
			(asked == "" || asked == b.Interface)
	})
}

func (s *server) showEndpoint(r *http.Request) (int, any, error) {
	return showOne(s, r, "endpoint", endpoints, func(b endpointBody) string { return b.ID })
}

type regionBody struct {
	ID          string  `json:"id"`
	Description string  `json:"description"`
	Parent      *string `json:"parent_region_id"`
	Links       links   `json:"links"`
}

func regions(v *view) []regionBody {
	var names []string
	for _, t := range v.visible {
		names = append(append(names, t.regions()...), t.region)
	}
	slices.Sort(names)
	var all []regionBody
	for _, name := range slices.Compact(names) {
		if name != "" {
			all = append(all, regionBody{ID: name, Links: linkTo("regions", name)})
		}
	}
	return all
}

func (s *server) listRegions(r *http.Request) (int, any, error) {
	return listMatching(s, r, "regions", regions, func(regionBody) bool { return true })
}

func (s *server) showRegion(r *http.Request) (int, any, error) {
	return showOne(s, r, "region", regions, func(b regionBody) string { return b.ID })
}

func listMatching[T any](
	s *server, r *http.Request, kind string, all func(*view) []T, matches func(T) bool,
) (int, any, error) {
	v, err := s.look(r.Context())
	if err != nil {
		return 0, nil, err
	}
	var chosen []T
	for _, one := range all(v) {
		if matches(one) {
			chosen = append(chosen, one)
		}
	}
	return http.StatusOK, listBody(kind, chosen), nil
}

func showOne[T any](
	s *server, r *http.Request, kind string, all func(*view) []T, idOf func(T) string,
) (int, any, error) {
	v, err := s.look(r.Context())
	if err != nil {
		return 0, nil, err
	}
	for _, one := range all(v) {
		if idOf(one) == r.PathValue("id") {
			return http.StatusOK, map[string]any{kind: one}, nil
		}
	}
	return 0, nil, notFound(kind, r.PathValue("id"))
}
