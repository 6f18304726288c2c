package openapi_test

import (
	"maps"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate/rpc/openapi"
	"github.com/quorate/quorate/rpc/procedures"
)

type operation struct {
	Description string
	Responses   map[string]struct {
		Content map[string]any
	}
}

// TestEveryProcedureIsDescribed compares the document with the procedures that the servers know: reads also as GET,
// streams as lines, and no procedure that plain HTTP cannot call or that is for nodes.
func TestEveryProcedureIsDescribed(t *testing.T) {
	var document struct {
		Paths map[string]struct{ Get, Post *operation }
	}
	if err := yaml.Unmarshal(openapi.Document(), &document); err != nil {
		t.Fatal(err)
	}
	known, err := procedures.New()
	if err != nil {
		t.Fatal(err)
	}
	var described []string
	for path, info := range known {
		if info.Kind != procedures.ServesClients || info.Uploads {
			continue
		}
		described = append(described, path)
		item := document.Paths[path]
		if item.Post == nil || item.Post.Description == "" {
			t.Errorf("POST %s is not described", path)
			continue
		}
		if isRead := !info.ChangesState && !info.Streams; isRead != (item.Get != nil) {
			t.Errorf("GET %s: described is %t, it is a read is %t", path, item.Get != nil, isRead)
		}
		mediaType := "application/json"
		if info.Streams {
			mediaType = "application/x-ndjson"
		}
		if content := item.Post.Responses["200"].Content; len(content) != 1 || content[mediaType] == nil {
			t.Errorf("POST %s answers %v, want %s", path, slices.Collect(maps.Keys(content)), mediaType)
		}
	}
	if len(described) < 50 {
		t.Errorf("only %d procedures are known", len(described))
	}
	for path := range document.Paths {
		if !slices.Contains(described, path) {
			t.Errorf("%s is described, and is not a procedure that plain HTTP can call", path)
		}
	}
}
