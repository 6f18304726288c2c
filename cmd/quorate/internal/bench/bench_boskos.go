package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// boskosLoad measures pairs of acquire and release in the protocol of Boskos. It works against the original as well.
type boskosLoad struct {
	http     *http.Client
	url      string
	rtype    string
	queue    bool
	duration time.Duration
}

// boskosMeasurement is the result for one number of callers.
type boskosMeasurement struct {
	pairs    []time.Duration
	refused  int
	failures int
	took     time.Duration
}

func newBoskosLoad(o benchOptions) *boskosLoad {
	return &boskosLoad{
		url: o.boskos, rtype: o.boskosType, queue: o.boskosQueue, duration: o.duration,
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1024}, Timeout: time.Minute},
	}
}

// benchBoskos measures one number of callers after the other.
func benchBoskos(ctx context.Context, c *cli.Env, o benchOptions) error {
	load := newBoskosLoad(o)
	rows := [][]string{{"CALLERS", "PAIRS/S", "PAIR P50", "PAIR P99", "PAIRS", "REFUSED", "FAILED"}}
	for _, callers := range o.callers {
		m, err := load.measureLoad(ctx, callers)
		if err != nil {
			return err
		}
		rows = append(rows, m.tableRow(callers))
	}
	p := &cli.Page{}
	if err := p.Table(rows); err != nil {
		return err
	}
	return c.Write(p.Bytes())
}

func (m boskosMeasurement) tableRow(callers int) []string {
	slices.Sort(m.pairs)
	times := measurement{calls: m.pairs}
	return []string{
		strconv.Itoa(callers), fmt.Sprintf("%.0f", float64(len(m.pairs))/m.took.Seconds()),
		times.latencyPercentile(50), times.latencyPercentile(99),
		strconv.Itoa(len(m.pairs)), strconv.Itoa(m.refused), strconv.Itoa(m.failures),
	}
}

// measureLoad runs callers until the time is over; each finishes the pair that it has begun.
func (l *boskosLoad) measureLoad(ctx context.Context, callers int) (boskosMeasurement, error) {
	results := make([]boskosMeasurement, callers)
	group, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	for i := range callers {
		group.Go(func() error {
			owner := fmt.Sprintf("bench-%d-%d", callers, i)
			m := &results[i]
			for time.Since(began) < l.duration {
				// A caller keeps its place in the queue by repeating the same id until it is served.
				id := fmt.Sprintf("%s-%d-%d", owner, began.UnixNano(), len(m.pairs))
				if err := l.acquireAndRelease(ctx, m, owner, id); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return boskosMeasurement{}, err
	}
	total := boskosMeasurement{took: time.Since(began)}
	for _, r := range results {
		total.pairs = append(total.pairs, r.pairs...)
		total.refused, total.failures = total.refused+r.refused, total.failures+r.failures
	}
	return total, nil
}

// acquireAndRelease acquires and releases one resource. A refusal is counted and is not an error.
func (l *boskosLoad) acquireAndRelease(ctx context.Context, m *boskosMeasurement, owner, requestID string) error {
	q := url.Values{"type": {l.rtype}, "state": {"free"}, "dest": {"leased"}, "owner": {owner}}
	if l.queue {
		q.Set("request_id", requestID)
	}
	began := time.Now()
	status, body, err := l.postForm(ctx, "acquire", q)
	switch {
	case err != nil:
		return err
	case status == http.StatusNotFound:
		m.refused++
		return nil
	case status != http.StatusOK:
		m.failures++
		return nil
	}
	var got struct{ Name string }
	if err := json.Unmarshal(body, &got); err != nil {
		return fmt.Errorf("the answer to an acquire is not a resource: %w", err)
	}
	return l.giveBack(ctx, m, began, url.Values{"name": {got.Name}, "dest": {"free"}, "owner": {owner}})
}

// giveBack repeats the release until it succeeds, because the measurement must leave no lease.
func (l *boskosLoad) giveBack(ctx context.Context, m *boskosMeasurement, began time.Time, q url.Values) error {
	for range 100 {
		status, _, err := l.postForm(ctx, "release", q)
		if err != nil {
			return err
		}
		if status == http.StatusOK {
			m.pairs = append(m.pairs, time.Since(began))
			return nil
		}
		m.failures++
	}
	return errors.New("a resource could not be released in 100 attempts")
}

func (l *boskosLoad) postForm(ctx context.Context, path string, q url.Values) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+"/"+path+"?"+q.Encode(), nil)
	if err != nil {
		return 0, nil, err
	}
	answer, err := l.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, body, errors.Join(err, answer.Body.Close())
}
