package rest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat/keystone/rest"
)

// fixed has one tree and accepts every change.
type fixed struct{ rest.Trees }

func (fixed) ListTrees(context.Context, *quoratev1.ListTreesRequest) (*quoratev1.ListTreesResponse, error) {
	return &quoratev1.ListTreesResponse{Revision: 1, Trees: []*quoratev1.TreeSummary{{Name: "t"}}}, nil
}

func (fixed) GetConfiguration(
	context.Context, *adminv1.GetConfigurationRequest,
) (*adminv1.GetConfigurationResponse, error) {
	return &adminv1.GetConfigurationResponse{Revision: 1, Trees: []*quoratev1.Tree{{
		Name: "t", Resources: []*quoratev1.Resource{{Name: "r"}, {Name: "north/class.VCPU"}},
		Nodes: []*quoratev1.Node{{Path: "a"}, {Path: "a/b"}},
	}}}, nil
}

func (fixed) GetUsage(_ context.Context, r *quoratev1.GetUsageRequest) (*quoratev1.GetUsageResponse, error) {
	return &quoratev1.GetUsageResponse{Nodes: []*quoratev1.NodeUsage{{
		Node: r.GetNode(), Resources: []*quoratev1.ResourceUsage{{Resource: "r"}, {Resource: "north/class.VCPU"}},
	}}}, nil
}

func (fixed) ListRevisions(
	context.Context, *adminv1.ListRevisionsRequest,
) (*adminv1.ListRevisionsResponse, error) {
	return &adminv1.ListRevisionsResponse{}, nil
}

func (fixed) SetLimits(context.Context, *quoratev1.SetLimitsRequest) (*quoratev1.SetLimitsResponse, error) {
	return &quoratev1.SetLimitsResponse{}, nil
}

func (fixed) ApplyTrees(context.Context, *quoratev1.ApplyTreesRequest) (*quoratev1.ApplyTreesResponse, error) {
	return &quoratev1.ApplyTreesResponse{}, nil
}

// FuzzCalls: whatever is sent, the answer is JSON, never a failure of the server, and an error has Keystone's form.
func FuzzCalls(f *testing.F) {
	for _, seed := range [][3]string{
		{"GET", "limits?service_id=t&project_id=b", ""},
		{"GET", "limits/t:a~b:r", ""},
		{"PATCH", "limits/t:a~b:r", `{"limit": {"resource_limit": 5, "description": null}}`},
		{"DELETE", "limits/t:a~b:north~class.VCPU", ""},
		{"POST", "limits", `{"limits": [{"project_id": "b", "service_id": "t", "resource_name": "r", "resource_limit": 1}]}`},
		{"POST", "registered_limits", `{"registered_limits": [{"service_id": "t", "resource_name": "x", "default_limit": 1}]}`},
		{"PATCH", "registered_limits/t:r", `{"registered_limit": {"default_limit": -1}}`},
		{"GET", "endpoints?interface=internalURL&region_id=north", ""},
		{"GET", "projects?name=b&parent_id=a", ""},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	handler := rest.NewHandler(fixed{}, rest.Options{})
	f.Fuzz(func(t *testing.T, method, path, body string) {
		at, err := url.Parse("/keystone/v3/" + path)
		if err != nil {
			return
		}
		r, err := http.NewRequestWithContext(t.Context(), method, "/", strings.NewReader(body))
		if err != nil {
			return
		}
		r.URL = at
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, r)
		text := answer.Body.Bytes()
		if answer.Code >= http.StatusInternalServerError || len(text) > 0 && !json.Valid(text) {
			t.Errorf("%s %s %s: %d %s", method, path, body, answer.Code, text)
		}
		var failed struct {
			Error struct {
				Code           int
				Message, Title string
			}
		}
		if answer.Code >= http.StatusBadRequest && method != http.MethodHead && (json.Unmarshal(text, &failed) != nil ||
			failed.Error.Code != answer.Code || failed.Error.Message == "" || failed.Error.Title == "") {
			t.Errorf("%s %s %s: %d %s", method, path, body, answer.Code, text)
		}
	})
}
