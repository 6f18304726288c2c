package rest

import (
	"context"
	"net/http"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// domain is that of all projects: trees say nothing of domains.
const domain = "default"

// projectBody shows a node, or the nodes of several trees that are one project.
type projectBody struct {
	ID          string         `json:"id"`
	Name        string         `json:"name"`
	Domain      string         `json:"domain_id"`
	Parent      string         `json:"parent_id"`
	IsDomain    bool           `json:"is_domain"`
	Enabled     bool           `json:"enabled"`
	Description string         `json:"description"`
	Tags        []string       `json:"tags"`
	Options     map[string]any `json:"options"`
	Links       links          `json:"links"`
}

func newProjectBody(n *nodeEntry) projectBody {
	parent := n.parent
	if parent == "" {
		parent = domain
	}
	return projectBody{
		ID: n.project, Name: n.projectName, Domain: domain, Parent: parent, Enabled: true, Tags: []string{},
		Options: map[string]any{}, Links: linkTo("projects", n.project),
	}
}

func (s *server) showProject(r *http.Request) (int, any, error) {
	v, err := s.look(r.Context())
	if err != nil {
		return 0, nil, err
	}
	id := r.PathValue("id")
	for _, t := range v.visible {
		for _, n := range t.byProject[id] {
			switch sees, err := s.sees(r.Context(), v, t, n); {
			case err != nil:
				return 0, nil, err
			case sees:
				return http.StatusOK, map[string]any{"project": newProjectBody(n)}, nil
			}
		}
	}
	return 0, nil, notFound("project", id)
}

func (s *server) sees(ctx context.Context, v *view, t *treeEntry, n *nodeEntry) (bool, error) {
	err := s.wholeUsage(ctx, v, t, n.path, false, func(*quoratev1.NodeUsage) {})
	if err != nil && !isForbidden(err) {
		return false, err
	}
	return err == nil, nil
}

// listProjects lists the projects whose usage the caller may read, by tree and path, each once.
func (s *server) listProjects(r *http.Request) (int, any, error) {
	v, err := s.look(r.Context())
	if err != nil {
		return 0, nil, err
	}
	f := filter{r.URL.Query()}
	if !f.allows("domain_id", domain) || f.query.Get("is_domain") == "true" {
		return http.StatusOK, listBody[projectBody]("projects", nil), nil
	}
	var found []projectBody
	listed := map[string]bool{}
	for _, t := range v.visible {
		if len(found) > maxListed {
			break
		}
		err := s.eachNode(r.Context(), v, t, f.query.Get("name"), func(n *nodeEntry) {
			body := newProjectBody(n)
			if !listed[n.project] && len(found) <= maxListed && f.allows("parent_id", body.Parent) {
				listed[n.project], found = true, append(found, body)
			}
		})
		if err != nil {
			return 0, nil, err
		}
	}
	return http.StatusOK, listBody("projects", found), nil
}

// eachNode calls each with the nodes whose usage the caller may read: those of one name of a project, or all.
func (s *server) eachNode(ctx context.Context, v *view, t *treeEntry, name string, each func(*nodeEntry)) error {
	if name != "" {
		for _, n := range t.nodes {
			if n.projectName != name {
				continue
			}
			sees, err := s.sees(ctx, v, t, n)
			if err != nil {
				return err
			}
			if sees {
				each(n)
			}
		}
		return nil
	}
	err := s.eachUsage(ctx, v, &quoratev1.GetUsageRequest{Tree: t.name, Subtree: true}, func(u *quoratev1.NodeUsage) {
		if n := t.byPath[u.GetNode()]; n != nil && len(u.GetResources()) > 0 {
			each(n)
		}
	})
	if isHidden(err) {
		return nil
	}
	return err
}
