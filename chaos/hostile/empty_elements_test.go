package hostile

import (
	"bytes"
	"compress/gzip"
	"context"
	varint "encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/verify"
)

// elementCount is the number of empty messages in 4 MiB of JSON; the binary form of protobuf needs two thirds of
// that.
const elementCount = 1_390_000

// smallRequest is a request of a few bytes with very many elements.
type smallRequest struct {
	procedure string
	// says is the field and its bound, which the error must name.
	says string
	// protobuf and json are the request before compression.
	protobuf, json []byte
}

// smallRequests returns one request for each kind of list.
func smallRequests() map[string]smallRequest {
	list := func(field byte, n int) []byte { return bytes.Repeat([]byte{field<<3 | 2, 0}, n) }
	inside := func(content []byte) []byte {
		return append(varint.AppendUvarint([]byte{1<<3 | 2}, uint64(len(content))), content...)
	}
	claims := byte((&quoratev1.AllocateRequest{}).ProtoReflect().Descriptor().Fields().ByName("claims").Number())
	text := func(before, after string) []byte {
		return []byte(before + strings.Repeat("{},", elementCount) + "{}" + after)
	}
	return map[string]smallRequest{
		"Allocate": {
			"AllocationService/Allocate", "claims: must contain no more than 32 items",
			list(claims, elementCount), text(`{"claims":[`, `]}`),
		},
		"BatchAllocate": {
			"AllocationService/BatchAllocate", "requests: must contain no more than 1000 items",
			list(1, elementCount), text(`{"requests":[`, `]}`),
		},
		"a request in a batch": {
			"AllocationService/BatchAllocate", "more than",
			inside(list(claims, elementCount)), text(`{"requests":[{"claims":[`, `]}]}`),
		},
		"ApplyTrees": {
			"TreeService/ApplyTrees", "trees[0].nodes: must contain no more than 20000 items",
			inside(list(5, elementCount)), text(`{"trees":[{"nodes":[`, `]}]}`),
		},
		"UpdateItems": {
			"ItemService/UpdateItems", "updates: must contain no more than 1000 items",
			list(1, elementCount), text(`{"updates":[`, `]}`),
		},
	}
}

// TestSmallRequestsWithManyElements: the leader and a follower refuse a few kilobytes that decompress to more than a
// million elements, with an error that names the field and its bound, and use little memory.
func TestSmallRequestsWithManyElements(t *testing.T) {
	const most = 100 << 20
	// Garbage is collected early, so that the peak is what the requests hold and not what the collector leaves lying.
	c := startCluster(t, clusterOptions{args: []string{"--gc-percent", "20"}})
	c.applyTree(t, 100)
	leader, follower := c.findLeader(t)
	before := map[*node]int64{leader: leader.memoryOf(t, "VmHWM"), follower: follower.memoryOf(t, "VmHWM")}
	for name, request := range smallRequests() {
		for form, body := range map[string][]byte{
			"application/proto": request.protobuf,
			"application/json":  request.json,
		} {
			sent, isJSON := compressBody(t, body), form == "application/json"
			for _, asked := range []*node{leader, follower} {
				if !verify.Enabled() && isJSON != (asked == leader) {
					continue // both forms and both nodes, but not each with each
				}
				answer, err := c.postCompressed(t, asked, request.procedure, form, sent)
				if err != nil {
					t.Fatalf("%s as %s in %d bytes to %s: %v", name, form, len(sent), asked.ID, err)
				}
				if answer.Code != "invalid_argument" || !strings.Contains(answer.Message, request.says) ||
					len(answer.Message) > 4<<10 {
					t.Errorf("%s as %s to %s: got %s %.200s, want %q", name, form, asked.ID, answer.Code,
						answer.Message, request.says)
				}
				for n := range before {
					if grown := n.memoryOf(t, "VmHWM") - before[n]; grown > most {
						t.Fatalf("%s as %s in %d bytes to %s took %d MiB at %s", name, form, len(sent), asked.ID,
							grown>>20, n.ID)
					}
				}
			}
		}
	}
	// Many at once, of the kind that passes the bounds of its fields and only exceeds those of the whole request.
	body := smallRequests()["a request in a batch"]
	sent := compressBody(t, body.json)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := c.postCompressed(t, leader, body.procedure, "application/json", sent); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if grown := leader.memoryOf(t, "VmHWM") - before[leader]; grown > 2*most {
		t.Errorf("eight requests of %d bytes took %d MiB", len(sent), grown>>20)
	}
	for n, earlier := range before {
		t.Logf("%s took %d MiB at most", n.ID, (n.memoryOf(t, "VmHWM")-earlier)>>20)
	}
	waitFor(t, "the cluster carries out nothing any more",
		func() bool { return c.pairsPerSecond(t, follower, 2, 300*time.Millisecond) > 0 })
}

func compressBody(t *testing.T, body []byte) []byte {
	t.Helper()
	var into bytes.Buffer
	w, err := gzip.NewWriterLevel(&into, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(body); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return into.Bytes()
}

type apiError struct{ Code, Message string }

// postCompressed sends a compressed request with the Connect protocol.
func (c *cluster) postCompressed(
	t *testing.T, to *node, procedure, form string, body []byte,
) (answer apiError, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL()+"/quorate.v1."+procedure,
		bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	request.Header.Set("Content-Type", form)
	request.Header.Set("Content-Encoding", "gzip")
	response, err := c.httpClient(t, "").Do(request)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close() //nolint:errcheck // it is only read
	content, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(content, &answer); err != nil {
		return answer, fmt.Errorf("HTTP %d %.200s: %w", response.StatusCode, content, err)
	}
	return answer, nil
}
