//go:build unix

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/load"
)

// boskosLoad measures pairs of acquire and release in the protocol of Boskos, against Quorate or the original.
type boskosLoad struct {
	http  *http.Client
	url   string
	rtype string
	queue bool
	id    string // unique for each measurement
	// served counts the pairs of each caller. Only that caller uses its element.
	served []int
}

type statusError struct {
	path   string
	status int
}

func (s *statusError) Error() string {
	return fmt.Sprintf("%s was answered with %d %s", s.path, s.status, http.StatusText(s.status))
}

// codeRefused is the code of an acquire that found no free resource, which is part of the protocol.
const codeRefused = "refused"

// boskosCode counts an acquire without a free resource as refused.
func boskosCode(err error) string {
	status := (*statusError)(nil)
	switch {
	case errors.As(err, &status) && status.status == http.StatusNotFound:
		return codeRefused
	case errors.As(err, &status):
		return fmt.Sprintf("http_%d", status.status)
	}
	return load.CodeError
}

func benchBoskos(ctx context.Context, c *cli.Env, o options) error {
	o.workloadName, o.maxErrors = "boskos", 0 // refusals are part of the protocol
	report := newReport(c, o)
	report.Servers = []string{o.boskos}
	for _, callers := range o.callers {
		boskos := &boskosLoad{
			url: o.boskos, rtype: o.boskosType, queue: o.boskosQueue, id: uuid.NewString(),
			served: make([]int, callers),
			http:   &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1024}, Timeout: time.Minute},
		}
		usage := cpuUsage{}
		generator, err := load.New(load.Config{
			Callers: callers, Rate: o.rate, Warmup: o.warmup, Duration: o.duration, Count: o.count,
			ErrorCode: boskosCode, OnMeasureStart: usage.begin, OnMeasureEnd: usage.end,
		})
		if err != nil {
			return err
		}
		run := Run{Result: generator.Run(ctx, boskos.acquireAndRelease)}
		usage.report(&run)
		report.Runs = append(report.Runs, run)
		if ctx.Err() != nil {
			break
		}
	}
	return report.publish(c, o)
}

func (l *boskosLoad) acquireAndRelease(ctx context.Context, it *load.Iteration) error {
	return it.Measure("pair", 1, func() error {
		owner := fmt.Sprintf("bench-%s-%d", l.id, it.Caller)
		q := url.Values{"type": {l.rtype}, "state": {"free"}, "dest": {"leased"}, "owner": {owner}}
		if l.queue {
			// A caller keeps its place in the queue by repeating the same id until it is served.
			q.Set("request_id", fmt.Sprintf("%s-%d", owner, l.served[it.Caller]))
		}
		body, err := l.postForm(ctx, "acquire", q)
		if err != nil {
			return err
		}
		var got struct{ Name string }
		if err := json.Unmarshal(body, &got); err != nil {
			return fmt.Errorf("the answer to an acquire is not a resource: %w", err)
		}
		l.served[it.Caller]++
		return l.giveBack(ctx, url.Values{"name": {got.Name}, "dest": {"free"}, "owner": {owner}})
	})
}

// giveBack repeats the release until it succeeds, also after an interruption, because the measurement must leave no
// lease.
func (l *boskosLoad) giveBack(ctx context.Context, q url.Values) error {
	var err error
	for range 100 {
		if _, err = l.postForm(context.WithoutCancel(ctx), "release", q); err == nil {
			return nil
		}
		if status := (*statusError)(nil); !errors.As(err, &status) {
			return err
		}
	}
	return fmt.Errorf("a resource could not be released in 100 attempts: %w", err)
}

func (l *boskosLoad) postForm(ctx context.Context, path string, q url.Values) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+"/"+path+"?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := l.http.Do(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err == nil && answer.StatusCode != http.StatusOK {
		err = &statusError{path: path, status: answer.StatusCode}
	}
	return body, err
}
