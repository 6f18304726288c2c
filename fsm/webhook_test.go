package fsm

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/quota"
)

// TestWebhookRecords: a snapshot keeps every field of a webhook.
func TestWebhookRecords(t *testing.T) {
	w := quota.Webhook{
		WebhookSpec: quota.WebhookSpec{
			Name: "atlas", URL: "https://hooks.example/atlas", Secret: "cern.atlas", Types: []string{"allocation.granted"},
			Tree: "cern", Node: "atlas", RetryFor: 1000,
		},
		Owner: "account/anna", Version: 2, Cursor: quota.EventPosition{Index: 3, Number: 4}, State: quota.WebhookDead,
		Delivered: 5, Gaps: 6, FailingSince: quota.Stamp{At: 7, Wall: 8}, LastError: "no route",
	}
	for _, part := range []any{w, w.WebhookSpec} {
		for i, v := 0, reflect.ValueOf(part); i < v.NumField(); i++ {
			if v.Field(i).IsZero() {
				t.Errorf("set %s in this test", v.Type().Field(i).Name)
			}
		}
	}
	if diff := cmp.Diff(&w, decodeWebhook(encodeWebhook(&w))); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}
