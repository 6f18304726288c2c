package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

type boskosClient struct {
	t   *testing.T
	url string
}

func (c boskosClient) post(status int, call, contains string) {
	c.t.Helper()
	if got, body := httpPost(c.t, c.url+call, ""); got != status || !strings.Contains(body, contains) {
		c.t.Errorf("%s: %d %s, want %d with %s", call, got, body, status, contains)
	}
}

// awaitMetric waits until a type has so many resources by state.
func (c boskosClient) awaitMetric(rtype, states string) {
	c.t.Helper()
	want, body := `"current":{`+states+`}`, ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if _, body = httpGet(c.t, c.url+"/metric?type="+rtype); strings.Contains(body, want) {
			return
		}
	}
	c.t.Fatalf("%s: %s, want %s", rtype, body, want)
}

func applyBoskosFile(t *testing.T, f serverFlags, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "boskos.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	playSteps(t, f, []step{{"apply --from boskos -f " + file, 0, ""}})
}

// TestBoskosRequestsKeepTheirPlace: a request that asks again with another destination keeps its place in the queue and
// its grant.
func TestBoskosRequestsKeepTheirPlace(t *testing.T) {
	t.Parallel()
	f, url := withBoskos(t)
	startServer(t, f)
	applyBoskosFile(t, f, "resources: [{type: account, names: [a1]}]")
	c := boskosClient{t, url}
	acquire := "/acquire?type=account&state=free&request_id=1&owner="
	c.post(200, acquire+"holder&dest=busy", "")
	c.post(404, acquire+"first&dest=busy", "try again later")
	c.post(404, acquire+"second&dest=busy", "try again later")
	c.post(404, acquire+"first&dest=leased", "try again later")
	c.post(200, "/release?name=a1&dest=free&owner=holder", "")
	c.post(404, acquire+"second&dest=leased", "try again later")
	for _, dest := range []string{"testing", "leased", "busy"} {
		c.post(200, acquire+"first&dest="+dest, `"name":"a1","state":"`+dest+`","owner":"first"`)
	}
	c.post(200, "/update?name=a1&state=busy&owner=first", "")
	c.post(200, "/release?name=a1&dest=free&owner=first", "")
	c.post(200, acquire+"second&dest=busy", `"name":"a1","state":"busy","owner":"second"`)
}

// TestBoskosCleaner: resources without names that are too many or too old wait for a cleaner, unless the file says that
// there is none.
func TestBoskosCleaner(t *testing.T) {
	t.Parallel()
	f, url := withBoskos(t)
	startServer(t, f)
	file := "quorate: {cleaner: CLEANER}\nresources:\n" +
		"- {type: cluster, min-count: 2, max-count: 2}\n- {type: old, max-count: 1, lifespan: 1s}\n"
	withCleaner := strings.Replace(file, "CLEANER", "true", 1)
	applyBoskosFile(t, f, withCleaner)
	c := boskosClient{t, url}
	c.post(200, "/acquire?type=cluster&state=free&dest=busy&owner=me", `"name":"cluster-1"`)
	c.post(404, "/acquire?type=cluster&state=toBeDeleted&dest=cleaning&owner=cleaner", "no available resource cluster")
	applyBoskosFile(t, f, strings.Replace(withCleaner, "min-count: 2, max-count: 2", "max-count: 1", 1))
	c.awaitMetric("cluster", `"busy":1,"toBeDeleted":1`)
	c.post(200, "/acquire?type=cluster&state=toBeDeleted&dest=cleaning&owner=cleaner", `"name":"cluster-2"`)
	c.post(200, "/release?name=cluster-2&dest=free&owner=cleaner", "") // it is one too many all the same
	c.awaitMetric("cluster", `"busy":1,"toBeDeleted":1`)
	c.post(200, "/acquire?type=cluster&state=toBeDeleted&dest=cleaning&owner=cleaner", `"name":"cluster-2"`)
	c.post(200, "/release?name=cluster-2&dest=tombstone&owner=cleaner", "")
	c.awaitMetric("cluster", `"busy":1`)

	c.post(200, "/acquire?type=old&state=free&dest=busy&owner=me", `"name":"old-1"`)
	c.post(200, "/release?name=old-1&dest=free&owner=me", "")
	c.awaitMetric("old", `"toBeDeleted":1`)
	c.post(404, "/acquire?type=old&state=free&dest=busy&owner=me", "no available resource old")
	applyBoskosFile(t, f, strings.Replace(file, "CLEANER", "false", 1))
	c.post(200, "/acquire?type=old&state=free&dest=busy&owner=me", `"name":"old-2"`)
	c.post(200, "/release?name=old-2&dest=free&owner=me", "")
	awaitCondition(t, "without a cleaner, what is too old does not go", func() bool {
		status, body := httpGet(t, url+"/metric?type=old")
		if strings.Contains(body, "toBeDeleted") {
			t.Errorf("without a cleaner: %s", body)
		}
		return status == 404
	})
}
