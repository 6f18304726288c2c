package ledger_test

import (
	"encoding/json"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// load builds a ledger from an image as a restore does.
func load(image *ledger.Snapshot, b quota.Bounds) (*ledger.Ledger, error) {
	loader := ledger.NewRestorer(b, image.Header)
	for _, t := range image.Trees() {
		if err := loader.AddTree(t); err != nil {
			return nil, err
		}
	}
	for _, r := range image.Revisions() {
		if err := loader.AddRevision(r); err != nil {
			return nil, err
		}
	}
	for it := range image.Items() {
		if err := loader.AddItem(it); err != nil {
			return nil, err
		}
	}
	for a := range image.Held() {
		if err := loader.AddHeld(a); err != nil {
			return nil, err
		}
	}
	for a := range image.Ended() {
		if err := loader.AddEnded(a); err != nil {
			return nil, err
		}
	}
	for w := range image.Waiting() {
		if err := loader.AddWaiting(w); err != nil {
			return nil, err
		}
	}
	for _, e := range image.Events() {
		if err := loader.AddEvent(e); err != nil {
			return nil, err
		}
	}
	return loader.Finish()
}

// picture is everything that an image holds, as text.
func picture(image *ledger.Snapshot) string {
	data, err := json.Marshal(map[string]any{
		"header": image.Header, "trees": image.Trees(), "revisions": image.Revisions(),
		"held": slices.Collect(image.Held()), "ended": slices.Collect(image.Ended()), "events": image.Events(),
		"waiting": slices.Collect(image.Waiting()),
		"items":   slices.Collect(image.Items()),
	})
	if err != nil {
		panic(err)
	}
	return string(data)
}
