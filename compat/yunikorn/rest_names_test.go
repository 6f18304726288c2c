package yunikorn_test

import (
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat/yunikorn"
)

func TestNames(t *testing.T) {
	for _, name := range []string{"x@y.example", "x%40y.example"} {
		if w := call(t, cluster(t), http.MethodGet, "/ws/v1/partition/default/usage/user/"+name,
			""); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	plus := &fakeTrees{tree: &quoratev1.Tree{Name: "a+b"}} // made by hand: a partition of that name is a+2Bb
	if w := call(t, plus, http.MethodGet, "/ws/v1/partition/a+b/queues", ""); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	slash := &fakeTrees{
		tree:  &quoratev1.Tree{Name: "gpu+20pool"},
		users: []*quoratev1.PrincipalUsage{{Name: "system:ns/x"}},
	}
	w := call(t, slash, http.MethodGet, "/ws/v1/partition/gpu%20pool/usage/user/system:ns%2Fx", "")
	if !strings.Contains(w.Body.String(), `"userName":"system:ns/x"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestLongQueue checks that answers use the name of a queue that is too long for a node.
func TestLongQueue(t *testing.T) {
	text, err := os.ReadFile("testdata/cases/s15-queue-name-64.yaml")
	if err != nil {
		t.Fatal(err)
	}
	conversion, err := yunikorn.Convert(text)
	if err != nil {
		t.Fatal(err)
	}
	const node, queue = "a_b+3Ac+23d+2Fe@f-012345678901234567890123456++ef8628a8ddd33466",
		"root.a_b:c#d/e@f-0123456789012345678901234567890123456789012345678901"
	if got := conversion.Trees[0].GetNodes()[0].GetPath(); got != node {
		t.Errorf("the node is %s", got)
	}
	w := call(t, &fakeTrees{tree: conversion.Trees[0]}, http.MethodGet,
		"/ws/v1/partition/default/queue/"+url.QueryEscape(queue), "")
	if !strings.Contains(w.Body.String(), `"queuename":"`+queue+`"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
