package admission

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// scrapeAge is how old a page of metrics may be: to make one costs a look at everything that is counted.
	scrapeAge = time.Second
	// pagesAtOnce are pages of metrics that are made at one time, one of each form.
	pagesAtOnce = 2
)

// LimitScrapes serves /metrics from pages of [CachePages], to a bounded number of callers at a time.
func (a *Controller) LimitScrapes(pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		LimitRest(w, r)
		var caller *Caller
		if c := connectionOf(r.Context()); c != nil {
			caller = c.caller
		}
		if err := a.Limiters.scrapes.TryAcquire(caller, 1); err != nil {
			w.Header().Set("Retry-After", "1")
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, err.Error()+"\n") // the caller has gone
			return
		}
		defer a.Limiters.scrapes.Release(caller, 1)
		pages.ServeHTTP(w, r)
	})
}

// CachePages serves pages of metrics. One is collected at most once in an interval for any rate of scrapes, and is
// cached with and without compression.
func CachePages(metrics http.Handler) http.Handler {
	var pages [pagesAtOnce]metricsPage
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		form := 0
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			form = 1
		}
		page := pages[form].currentPage(metrics, r, form == 1)
		// A caller that does not take the page must not keep its slot.
		// a recorded connection has no deadlines
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(HeaderPatience))
		maps.Copy(w.Header(), page.header)
		w.WriteHeader(page.status)
		_, _ = w.Write(page.body.Bytes()) // the caller has gone
	})
}

type metricsPage struct {
	mu   sync.Mutex
	made time.Time
	last *pageRecorder
}

// currentPage returns the cached page, or a new one if that is too old. Concurrent callers wait for the new page.
func (p *metricsPage) currentPage(metrics http.Handler, r *http.Request, packed bool) *pageRecorder {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last != nil && time.Since(p.made) < scrapeAge {
		return p.last
	}
	// The page is for everyone: nothing of one caller's request but its address may matter.
	own := r.Clone(context.WithoutCancel(r.Context()))
	own.Header = http.Header{"Accept": {"text/plain;version=0.0.4"}}
	own.URL.RawQuery = ""
	if packed {
		own.Header.Set("Accept-Encoding", "gzip")
	}
	page := &pageRecorder{header: http.Header{}, status: http.StatusOK}
	metrics.ServeHTTP(page, own)
	p.last, p.made = page, time.Now()
	return page
}

type pageRecorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header is that of the answer.
func (p *pageRecorder) Header() http.Header { return p.header }

// WriteHeader keeps the status.
func (p *pageRecorder) WriteHeader(status int) { p.status = status }

// Write keeps a part of the body.
func (p *pageRecorder) Write(b []byte) (int, error) { return p.body.Write(b) }
