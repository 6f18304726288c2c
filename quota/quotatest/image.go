package quotatest

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// Restore builds a ledger from an image as the start of a server does.
func Restore(image *ledger.Snapshot, b quota.Bounds) (*ledger.Ledger, error) {
	restorer := ledger.NewRestorer(b, image.Header)
	if book := image.Book(); book.Revision() > 0 {
		if err := restorer.SetAccess(book.State()); err != nil {
			return nil, err
		}
	}
	for _, p := range image.Policies() {
		if err := restorer.AddPolicy(p); err != nil {
			return nil, err
		}
	}
	for _, t := range image.Trees() {
		if err := restorer.AddTree(t); err != nil {
			return nil, err
		}
	}
	for _, r := range image.Revisions() {
		if err := restorer.AddRevision(r); err != nil {
			return nil, err
		}
	}
	for _, r := range image.LimitRequests() {
		if err := restorer.AddLimitRequest(r); err != nil {
			return nil, err
		}
	}
	for _, w := range image.Webhooks() {
		if err := restorer.AddWebhook(w); err != nil {
			return nil, err
		}
	}
	for _, s := range image.Scheduled() {
		if err := restorer.AddScheduled(s); err != nil {
			return nil, err
		}
	}
	for it := range image.Items() {
		if err := restorer.AddItem(it); err != nil {
			return nil, err
		}
	}
	for a := range image.Held() {
		if err := restorer.AddHeld(a); err != nil {
			return nil, err
		}
	}
	for a := range image.Ended() {
		if err := restorer.AddEnded(a); err != nil {
			return nil, err
		}
	}
	for w := range image.Waiting() {
		if err := restorer.AddWaiting(w); err != nil {
			return nil, err
		}
	}
	for _, e := range image.Events() {
		if err := restorer.AddEvent(e); err != nil {
			return nil, err
		}
	}
	return restorer.Finish()
}

// ImageText is everything that an image has, as text. An empty list is written like none, as on disk: most are none, so
// that few have to be replaced.
func ImageText(image *ledger.Snapshot) string {
	data, err := json.Marshal(map[string]any{
		"header": image.Header, "policies": image.Policies(), "trees": image.Trees(), "revisions": image.Revisions(),
		"scheduled": image.Scheduled(),
		"held":      slices.Collect(image.Held()), "ended": slices.Collect(image.Ended()), "events": image.Events(),
		"waiting": slices.Collect(image.Waiting()),
		"items":   slices.Collect(image.Items()), "requests": image.LimitRequests(),
		"webhooks": image.Webhooks(),
	})
	if err != nil {
		panic(err)
	}
	return string(bytes.ReplaceAll(data, []byte(":[]"), []byte(":null")))
}
