package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/quorate/quorate/chaos/history"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// boskosTree is the tree behind the Boskos front ends.
const boskosTree = "boskos"

// vanTTL is how long a resource is held without an update, in milliseconds. It bounds how long a resource stays lost
// after an unanswered call.
const vanTTL = 4000

func boskosTrees() []treeSpec {
	return []treeSpec{{
		name: boskosTree, limits: []history.Limit{{
			Tree: boskosTree, Resource: countedResource,
			Amount: history.Unlimited,
		}},
		items:  map[string][]string{"van": {"v1", "v2", "v3"}},
		change: func(p *quoratev1.Tree) { p.Resources[1].Items.TtlMs = vanTTL },
	}}
}

// startBoskos acquires, updates and releases resources as Boskos clients do.
func startBoskos(c *caller) func(context.Context) {
	held := ""
	return func(ctx context.Context) {
		switch {
		case len(c.config.Boskos) == 0:
			c.pauseAbout(ctx, 100*c.config.Pause)
		case held == "":
			held = c.acquireVan(ctx)
		case c.oneIn(2):
			c.callBoskos(ctx, history.BoskosUpdate, held, url.Values{"name": {held}, "state": {"busy"}})
		default:
			name := held
			held = ""
			c.retryUntilDecided(ctx, func() history.Op {
				o, _ := c.callBoskos(ctx, history.BoskosRelease, name, url.Values{"name": {name}, "dest": {"free"}})
				return o
			})
		}
	}
}

// acquireVan returns an empty name if nothing was acquired.
func (c *caller) acquireVan(ctx context.Context) string {
	_, van := c.callBoskos(ctx, history.BoskosAcquire, "", url.Values{
		"type": {"van"}, "state": {"free"},
		"dest": {"busy"},
	})
	return van
}

// callBoskos makes one call of the front end and returns the resource of the answer. The answers 404 and 401 are
// decisions; after any other failure the call may have been carried out.
func (c *caller) callBoskos(
	ctx context.Context, kind history.Kind, name string, query url.Values,
) (history.Op, string) {
	base := c.config.Boskos[c.random.IntN(len(c.config.Boskos))]
	o := c.beginOp(kind, &server{url: base})
	o.ID, o.TTL = fmt.Sprintf("%s-%d", c.workload, c.number), vanTTL
	query.Set("owner", o.ID)
	paths := map[history.Kind]string{
		history.BoskosAcquire: "/acquire", history.BoskosRelease: "/release",
		history.BoskosUpdate: "/update",
	}
	var status int
	err := c.withTimeout(ctx, func(ctx context.Context) (err error) {
		status, name, err = c.postBoskos(ctx, base+paths[kind]+"?"+query.Encode(), name)
		return err
	})
	if name != "" {
		o.Claims = []history.Claim{{Tree: boskosTree, Items: []string{"van/" + name}}}
	}
	ended := c.endBoskosOp(o, status, err)
	if ended.Outcome != history.OK {
		name = ""
	}
	return ended, name
}

func (c *caller) endBoskosOp(o *history.Op, status int, err error) history.Op {
	o.Return, o.Outcome = c.config.Recorder.Now(), history.Unknown
	switch {
	case err != nil:
		o.Reason = err.Error()
	case status == http.StatusOK:
		o.Outcome = history.OK
	case status == http.StatusNotFound, status == http.StatusUnauthorized:
		o.Outcome, o.Reason = history.Refused, http.StatusText(status)
	default:
		o.Reason = http.StatusText(status)
	}
	c.config.Recorder.Add(*o)
	return *o
}

func (c *caller) postBoskos(ctx context.Context, url, name string) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return 0, name, err
	}
	answer, err := c.config.HTTP.Do(r)
	if err != nil {
		return 0, name, err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read to its end
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return 0, name, err
	}
	var resource struct {
		Name string `json:"name"`
	}
	if answer.StatusCode == http.StatusOK && name == "" {
		err = json.Unmarshal(body, &resource)
		name = resource.Name
	}
	return answer.StatusCode, name, err
}
