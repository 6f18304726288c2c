package main_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestYuniKornsQuestionsAreAnswered: who used to ask a YuniKorn scheduler asks a server.
func TestYuniKornsQuestionsAreAnswered(t *testing.T) {
	t.Parallel()
	f := alone(t)
	serve(t, f)
	playSteps(t, f, []step{
		{"apply --from yunikorn -f ../../examples/yunikorn/queues.yaml", 0, "tree"},
		{"allocate --id pod-1 --user sue --group development --application app-1 --at default:dev --amount vcore=2", 0, "granted"},
	})
	for path, says := range map[string]string{
		"usage/users": `"sue"`, "usage/user/sue": `"app-1"`, "usage/groups": `"development"`, "queues": `"root.dev"`, "queue/root.dev": `"vcore"`,
	} {
		if status, body := get(t, f.url()+"/ws/v1/partition/default/"+path); status != http.StatusOK || !strings.Contains(body, says) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, body := get(t, f.url()+"/ws/v1/partition/nowhere/queues"); status != http.StatusNotFound {
		t.Errorf("an unknown partition: %d %s", status, body)
	}
	if status, body := post(t, f.url()+"/ws/v1/validate-conf", "partitions: []"); status != http.StatusOK || !strings.Contains(body, "allowed") {
		t.Errorf("a configuration: %d %s", status, body)
	}
}
