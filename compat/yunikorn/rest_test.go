package yunikorn_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/compat/yunikorn"
)

// In-process handlers and network clients both implement the interface that the front end requires.
var (
	_ yunikorn.Trees = quoratev1connect.TreeServiceHandler(nil)
	_ yunikorn.Trees = quoratev1connect.TreeServiceClient(nil)
)

// fakeTrees holds one tree and gives lists in pages of two.
type fakeTrees struct {
	tree          *quoratev1.Tree
	usage         []*quoratev1.NodeUsage
	users, groups []*quoratev1.PrincipalUsage
	fails         error // of GetTree
	breaks        error // of the other calls
}

func (f *fakeTrees) GetTree(_ context.Context, r *quoratev1.GetTreeRequest) (*quoratev1.GetTreeResponse, error) {
	if f.fails != nil {
		return nil, f.fails
	}
	if r.GetName() != f.tree.GetName() {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("there is no such tree"))
	}
	return &quoratev1.GetTreeResponse{Tree: f.tree}, nil
}

func (f *fakeTrees) GetUsage(_ context.Context, r *quoratev1.GetUsageRequest) (*quoratev1.GetUsageResponse, error) {
	var found []*quoratev1.NodeUsage
	for _, node := range f.usage {
		under := r.GetNode() == "" || strings.HasPrefix(node.GetNode(), r.GetNode()+"/")
		if node.GetNode() == r.GetNode() || r.GetSubtree() && under {
			found = append(found, node)
		}
	}
	if f.breaks != nil {
		return nil, f.breaks
	}
	page, next := paged(found, r.GetPageToken())
	return &quoratev1.GetUsageResponse{Nodes: page, NextPageToken: next}, nil
}

func (f *fakeTrees) ListPrincipals(_ context.Context,
	r *quoratev1.ListPrincipalsRequest,
) (*quoratev1.ListPrincipalsResponse, error) {
	all := f.users
	if r.GetKind() == quoratev1.HolderKind_HOLDER_KIND_GROUP {
		all = f.groups
	}
	var found []*quoratev1.PrincipalUsage
	for _, p := range all {
		if r.GetName() == "" || r.GetName() == p.GetName() {
			found = append(found, p)
		}
	}
	if f.breaks != nil {
		return nil, f.breaks
	}
	page, next := paged(found, r.GetPageToken())
	return &quoratev1.ListPrincipalsResponse{Principals: page, NextPageToken: next}, nil
}

// paged gives two of a list; the token is as long as what was given before.
func paged[T any](all []T, token string) (page []T, next string) {
	rest := all[len(token):]
	if len(rest) <= 2 {
		return rest, ""
	}
	return rest[:2], token + "xx"
}

// cluster is what queues.yaml becomes, with two applications of user1 and one of a user without limits.
func cluster(t *testing.T) *fakeTrees {
	t.Helper()
	text, err := os.ReadFile("testdata/rest/queues.yaml")
	if err != nil {
		t.Fatal(err)
	}
	conversion, err := yunikorn.Convert(text)
	if err != nil {
		t.Fatal(err)
	}
	limit := func(amount int64) *quoratev1.Limit {
		return &quoratev1.Limit{Value: &quoratev1.Limit_Amount{Amount: amount}}
	}
	room := func(amount int64) *int64 { return &amount }
	limited := map[string]*quoratev1.Limit{"memory": limit(50e9), "gpu": limit(0)}
	return &fakeTrees{
		tree: conversion.Trees[0],
		usage: []*quoratev1.NodeUsage{
			{RunningApplications: 3, Resources: []*quoratev1.ResourceUsage{
				{Resource: "gpu"}, {Resource: "memory", Subtree: 12e9}, {Resource: "vcore", Subtree: 12000},
			}},
			{Node: "a+3Ab", RunningApplications: 1, Resources: []*quoratev1.ResourceUsage{
				{Resource: "gpu"}, {Resource: "memory", Subtree: 6e9}, {Resource: "vcore", Subtree: 6000},
			}},
			{Node: "a+3Ab/leaf", RunningApplications: 1, Resources: []*quoratev1.ResourceUsage{
				{Resource: "gpu"}, {Resource: "memory", Subtree: 6e9}, {Resource: "vcore", Subtree: 6000},
			}},
			{Node: "default", RunningApplications: 2, MaxApplications: limit(5), Resources: []*quoratev1.ResourceUsage{
				{Resource: "gpu"},
				{Resource: "memory", Limit: limit(8e9), Subtree: 6e9, Headroom: room(2e9)},
				{Resource: "vcore", Limit: limit(16000), Subtree: 6000, Headroom: room(10000)},
			}},
		},
		users: []*quoratev1.PrincipalUsage{
			{Name: "guest", Nodes: []*quoratev1.PrincipalNode{
				{Node: "default", Used: map[string]int64{"memory": 1}, Applications: []string{"app3"}},
			}},
			{Name: "user1", Groups: map[string]string{"app1": "*", "app2": "tester"}, Nodes: []*quoratev1.PrincipalNode{
				{
					Used: map[string]int64{"memory": 12e9, "vcore": 12000}, Applications: []string{"app2", "app1"},
					Limits: limited, MaxApplications: limit(10),
				},
				{Node: "a+3Ab", Used: map[string]int64{"memory": 6e9, "vcore": 6000}, Applications: []string{"app2"}},
				{
					Node: "a+3Ab/leaf", Used: map[string]int64{"memory": 6e9, "vcore": 6000},
					Applications: []string{"app2"},
				},
				{Node: "default", Used: map[string]int64{"memory": 6e9, "vcore": 6000}, Applications: []string{"app1"}},
			}},
			{Name: "x@y.example", Nodes: []*quoratev1.PrincipalNode{{Node: "gone/since", MaxApplications: limit(1)}}},
		},
		groups: []*quoratev1.PrincipalUsage{
			{Name: "*", Nodes: []*quoratev1.PrincipalNode{{Node: "a+3Ab/leaf", MaxApplications: limit(3)}}},
			{Name: "tester", Users: []string{"user1"}, Nodes: []*quoratev1.PrincipalNode{
				{Used: map[string]int64{"memory": 6e9, "vcore": 6000}, Applications: []string{"app2"}},
				{Node: "a+3Ab", Used: map[string]int64{"memory": 6e9, "vcore": 6000}, Applications: []string{"app2"}},
				{
					Node: "a+3Ab/leaf", Used: map[string]int64{"memory": 6e9, "vcore": 6000},
					Applications: []string{"app2"},
					Limits:       map[string]*quoratev1.Limit{"vcore": limit(10000)}, MaxApplications: limit(2),
				},
			}},
		},
	}
}

func call(t *testing.T, trees yunikorn.Trees, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	yunikorn.NewHandler(trees).ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w
}

func TestAnswers(t *testing.T) {
	tests := map[string]string{ // golden file: path
		"users":         "/usage/users",
		"user":          "/usage/user/user1",
		"groups":        "/usage/groups",
		"group":         "/usage/group/tester",
		"group_all":     "/usage/group/*",
		"queues":        "/queues",
		"queue":         "/queue/root.default",
		"queue_alone":   "/queue/root.a:b",
		"queue_subtree": "/queue/root.A%3ab?subtree",
	}
	for name, path := range tests {
		t.Run(name, func(t *testing.T) {
			w := call(t, cluster(t), http.MethodGet, "/ws/v1/partition/default"+path, "")
			if w.Code != http.StatusOK {
				t.Fatalf("%d: %s", w.Code, w.Body)
			}
			var indented bytes.Buffer
			if err := json.Indent(&indented, w.Body.Bytes(), "", "  "); err != nil {
				t.Fatal(err)
			}
			golden(t, "testdata/rest/"+name+".json", indented.Bytes())
		})
	}
}

// TestEmptyLists checks that empty lists are written as lists.
func TestEmptyLists(t *testing.T) {
	empty := &fakeTrees{tree: &quoratev1.Tree{Name: "default"}}
	for _, list := range []string{"users", "groups"} {
		if w := call(t, empty, http.MethodGet, "/ws/v1/partition/default/usage/"+list, ""); w.Body.String() != "[]\n" {
			t.Errorf("%s: %d %s", list, w.Code, w.Body)
		}
	}
}

// TestClientsOfOtherReleases reads an answer strictly, as a client of 1.9 would.
func TestClientsOfOtherReleases(t *testing.T) {
	type queue struct {
		QueuePath           string            `json:"queuePath"`
		ResourceUsage       map[string]int64  `json:"resourceUsage"`
		RunningApplications []string          `json:"runningApplications"`
		MaxResources        map[string]int64  `json:"maxResources"`
		MaxApplications     uint64            `json:"maxApplications"`
		Children            []json.RawMessage `json:"children"`
	}
	var user struct {
		UserName string            `json:"userName"`
		Groups   map[string]string `json:"groups"`
		Queues   queue             `json:"queues"`
	}
	decoder := json.NewDecoder(
		call(t, cluster(t), http.MethodGet, "/ws/v1/partition/default/usage/user/user1", "").Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&user); err != nil {
		t.Fatal(err)
	}
	gpu, found := user.Queues.MaxResources["gpu"]
	if user.UserName != "user1" || user.Groups["app2"] != "tester" || user.Queues.QueuePath != "root" ||
		gpu != 0 || !found ||
		!slices.Equal(user.Queues.RunningApplications, []string{"app1", "app2"}) || len(user.Queues.Children) != 2 {
		t.Errorf("%+v", user)
	}
}

func TestErrors(t *testing.T) {
	const partition = "/ws/v1/partition/default"
	text := func(code, message string) string {
		return `{"status_code":` + code + `,"message":"` + message + `","description":"` + message + `"}` + "\n"
	}
	down := connect.NewError(connect.CodeUnavailable, errors.New("no leader"))
	tests := map[string]struct {
		method, path string
		fails        error
		want         string
	}{
		"unknown user":        {"GET", partition + "/usage/user/nobody", nil, text("404", "User not found")},
		"unknown group":       {"GET", partition + "/usage/group/nobody", nil, text("404", "Group not found")},
		"a user with a space": {"GET", partition + "/usage/user/a+b", nil, text("400", "Invalid user name")},
		"a user that is *":    {"GET", partition + "/usage/user/*", nil, text("400", "Invalid user name")},
		"a group with an at":  {"GET", partition + "/usage/group/a%40b", nil, text("400", "Invalid group name")},
		"a long user": {
			"GET", partition + "/usage/user/" + strings.Repeat("u", 257), nil,
			text("400", "Invalid user name"),
		},
		"unknown partition": {"GET", "/ws/v1/partition/none/usage/users", nil, text("404", "Partition not found")},
		"no such queues":    {"GET", "/ws/v1/partition/none/queues", nil, text("404", "Partition not found")},
		"a long partition": {
			"GET", "/ws/v1/partition/" + strings.Repeat("p", 64) + "/queues", nil,
			text("404", "Partition not found"),
		},
		"unknown queue":      {"GET", partition + "/queue/root.none", nil, text("404", "Queue not found")},
		"a bad queue":        {"GET", partition + "/queue/root..a", nil, text("400", "Invalid queue name")},
		"an unknown path":    {"GET", "/ws/v1/partitions/none", nil, text("404", "Not Found")},
		"a post":             {"POST", partition + "/queues", nil, text("405", "Method Not Allowed")},
		"a head":             {"HEAD", partition + "/usage/users", nil, text("405", "Method Not Allowed")},
		"validation by get":  {"GET", "/ws/v1/validate-conf", nil, text("405", "Method Not Allowed")},
		"no leader":          {"GET", partition + "/usage/users", down, text("503", "no leader")},
		"no leader, a queue": {"GET", partition + "/queue/root", down, text("503", "no leader")},
		"another error":      {"GET", partition + "/usage/groups", errors.New("broken"), text("500", "broken")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			trees := cluster(t)
			trees.fails = test.fails
			w := call(t, trees, test.method, test.path, "")
			if got := w.Body.String(); got != test.want {
				t.Errorf("%d: %s, want %s", w.Code, got, test.want)
			}
			var body struct {
				Code int `json:"status_code"`
			}
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.Code != w.Code {
				t.Errorf("status %d, in the body %d; %v", w.Code, body.Code, err)
			}
		})
	}
}

// TestErrorsBetween are of a call after the first.
func TestErrorsBetween(t *testing.T) {
	for _, path := range []string{
		"/usage/users", "/usage/user/user1", "/usage/groups",
		"/usage/group/tester", "/queues",
	} {
		trees := cluster(t)
		trees.breaks = connect.NewError(connect.CodeDeadlineExceeded, errors.New("late"))
		if w := call(t, trees, http.MethodGet, "/ws/v1/partition/default"+path,
			""); w.Code != http.StatusGatewayTimeout {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// TestOtherTrees shows a tree that was not converted: names in capitals, and amounts at the edge of what a number
// holds.
func TestOtherTrees(t *testing.T) {
	one := &quoratev1.Limit{Value: &quoratev1.Limit_Amount{Amount: 1}}
	trees := &fakeTrees{
		tree: &quoratev1.Tree{Name: "cern", Nodes: []*quoratev1.Node{{Path: "ATLAS"}, {Path: "atlas"}, {Path: "CMS"}}},
		usage: []*quoratev1.NodeUsage{{Node: "CMS", Resources: []*quoratev1.ResourceUsage{
			{Resource: "cores", Subtree: 1<<62 - 1, Limit: one},
			{Resource: "disk", Subtree: 1<<62 - 1, Limit: &quoratev1.Limit{
				Value: &quoratev1.Limit_Amount{Amount: 1 << 61},
			}},
		}}},
	}
	tests := map[string]string{
		"root.atlas": `"queuename":"root.atlas"`,
		"root.ATLAS": `"queuename":"root.ATLAS"`,
		"root.cms":   `"absUsedCapacity":{"cores":9223372036854775807,"disk":199}`,
	}
	for queue, want := range tests {
		w := call(t, trees, http.MethodGet, "/ws/v1/partition/cern/queue/"+queue, "")
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want %s", queue, w.Code, w.Body, want)
		}
	}
}

func TestHeaders(t *testing.T) {
	for _, path := range []string{"/ws/v1/partition/default/queues", "/ws/v1/partition/none/queues"} {
		header := call(t, cluster(t), http.MethodGet, path, "").Header()
		if header.Get("Content-Type") != "application/json; charset=UTF-8" ||
			header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", path, header)
		}
	}
}

func TestValidateConf(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"good":  {onRoot(sue), `{"allowed":true}`},
		"empty": {"", `{"allowed":true}`},
		"bad": {
			partitions("{name: a}"),
			`{"allowed":false,"reason":"partitions[0]: the partition has no queues: write queues: [] if there are none [queues-missing]"}`,
		},
		"too large": {
			strings.Repeat("#", 2*yunikorn.MaxSize),
			`{"allowed":false,"reason":"the text has more than 1048576 bytes: split the configuration by partitions [bounds]"}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := call(t, cluster(t), http.MethodPost, "/ws/v1/validate-conf", test.text)
			if got := strings.TrimSpace(w.Body.String()); got != test.want || w.Code != http.StatusOK {
				t.Errorf("%d %s, want %s", w.Code, got, test.want)
			}
		})
	}
}

// FuzzREST requests arbitrary addresses: every answer is JSON, and an error repeats its status.
func FuzzREST(f *testing.F) {
	for _, target := range []string{
		"usage/users", "usage/user/user1", "usage/user/x%40y.example", "usage/groups", "usage/group/*",
		"usage/group/a%2Fb",
		"queues", "queue/root.a:b", "queue/root.A%3ab?subtree", "queue/root..a", "queue/%zz", "", "../default/queues",
	} {
		f.Add("GET", "/ws/v1/partition/default/"+target)
	}
	f.Add("POST", "/ws/v1/validate-conf")
	f.Add("GET", "/ws/v1/partition/%2F/queues")
	f.Fuzz(func(t *testing.T, method, target string) {
		r, err := http.NewRequest(method, "http://node"+target, strings.NewReader("partitions: []"))
		if err != nil || !strings.HasPrefix(target, "/") {
			return
		}
		w := httptest.NewRecorder()
		yunikorn.NewHandler(cluster(t)).ServeHTTP(w, r)
		if w.Code >= 300 && w.Code < 400 {
			return // to the same address without dots and double slashes
		}
		var failure struct {
			Code int `json:"status_code"`
		}
		if !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%s %s: %d, and no JSON: %s", method, target, w.Code, w.Body)
		}
		if w.Code == http.StatusOK {
			return
		}
		if err := json.Unmarshal(w.Body.Bytes(), &failure); err != nil || failure.Code != w.Code || w.Code >= 500 {
			t.Fatalf("%s %s: %d: %s, %v", method, target, w.Code, w.Body, err)
		}
	})
}

// TestRefusedCallersAreToldSo: a call that is refused for its credential has the form of other errors.
func TestRefusedCallersAreToldSo(t *testing.T) {
	w := httptest.NewRecorder()
	yunikorn.WriteError(w, nil, connect.NewError(connect.CodeUnauthenticated, errors.New("says the test")))
	if w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") != "Bearer" ||
		!strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") ||
		!strings.Contains(w.Body.String(), `"message":"says the test"`) {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}
