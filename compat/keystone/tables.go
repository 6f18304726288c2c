package keystone

import (
	"encoding/json"
	"fmt"

	"github.com/quorate/quorate/compat"
)

// tableRow is a line of a list that "openstack limit list -f json", "openstack registered limit list -f json" or
// "openstack project list -f json" prints. The keys are the titles of the columns.
type tableRow struct {
	ID           string          `json:"ID"`
	Name         *string         `json:"Name"`
	DomainID     *string         `json:"Domain ID"`
	ProjectID    *string         `json:"Project ID"`
	ServiceID    *string         `json:"Service ID"`
	RegionID     *string         `json:"Region ID"`
	ResourceName *string         `json:"Resource Name"`
	Limit        json.RawMessage `json:"Resource Limit"`
	Default      json.RawMessage `json:"Default Limit"`
	Description  *string         `json:"Description"`
}

// mergeTable adds the lines of a list to the documents, in the words of the API.
func (c *converter) mergeTable(all *documents, number int, list json.RawMessage) {
	var rows []json.RawMessage
	if err := json.Unmarshal(list, &rows); err != nil {
		c.problems.Add("document %d: %s", number, compat.Unreadable(err))
		return
	}
	if len(rows) == 0 {
		c.problems.Add("document %d is an empty list: print registered_limits, limits or projects", number)
	}
	for i, text := range rows {
		var row tableRow
		what := fmt.Sprintf("document %d, line %d", number, i+1)
		if err := json.Unmarshal(text, &row); err != nil {
			c.problems.Add("%s: %s", what, compat.Unreadable(err))
			continue
		}
		c.tables = true
		entry := map[string]any{
			"service_id": row.ServiceID, "region_id": row.RegionID, "resource_name": row.ResourceName,
			"description": row.Description,
		}
		switch {
		case row.ResourceName != nil && row.Default != nil:
			entry["default_limit"] = row.Default
			all.Registered = append(all.Registered, encoded(entry))
		case row.ResourceName != nil && row.Limit != nil:
			entry["project_id"], entry["domain_id"], entry["resource_limit"] = row.ProjectID, row.DomainID, row.Limit
			all.Limits = append(all.Limits, encoded(entry))
		case row.ResourceName == nil && row.ID != "" && row.Name != nil:
			all.Projects = append(all.Projects, encoded(map[string]any{
				"id": row.ID, "name": row.Name, "domain_id": row.DomainID,
			}))
		default:
			c.problems.Add("%s is not one that openstack registered limit list, openstack limit list or openstack "+
				"project list prints with -f json", what)
		}
	}
}

func encoded(entry map[string]any) json.RawMessage {
	text, _ := json.Marshal(entry) // texts, and values that were JSON
	return text
}

// registerNamed registers the resources that limits name, where the list of registered limits was not handed over.
// Their defaults are 0 then: a default that is not known must not admit anything.
func (c *converter) registerNamed(all *documents) {
	seen := map[key]bool{}
	for _, l := range decodeEntries[projectLimit](&converter{}, "limit", all.Limits) {
		k := key{l.entry.Service, textOf(l.entry.Region), l.entry.Resource}
		if seen[k] {
			continue
		}
		seen[k] = true
		all.Registered = append(all.Registered, encoded(map[string]any{
			"service_id": l.entry.Service, "region_id": l.entry.Region, "resource_name": l.entry.Resource,
			"default_limit": 0,
		}))
	}
	if len(seen) > 0 {
		c.conversion.Note("there is no list of registered limits, so what a project has no limit of is 0: add the " +
			"output of openstack registered limit list -f json to the file")
	}
}
