package rpc

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
)

// BenchmarkAdmit measures what a call passes before its handler; "nothing" is what the benchmark itself takes.
func BenchmarkAdmit(b *testing.B) {
	cluster := newFakeCluster()
	cluster.leader = "n1"
	server, err := New(Config{
		Node: &fakeNode{fakeCluster: cluster, id: "n1"}, ClusterName: "test", Logger: hclog.NewNullLogger(),
		Metrics: http.NotFoundHandler(), Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		b.Fatal(err)
	}
	token := cluster.guard(b, nil)
	empty := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	steps := server.screenCalls(server.clientRoutes(b.Context(), empty, Config{Metrics: empty}))
	body := strings.Repeat(" ", 200)
	for _, c := range []struct {
		name          string
		handler       http.Handler
		authorization string
	}{
		{"nothing", empty, ""},
		{"steps", steps, ""},
		{"steps with a token", steps, "Bearer " + token.Reveal()},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, allocatePath, io.NopCloser(strings.NewReader(body)))
				r.ContentLength = int64(len(body))
				r.Header.Set("Content-Type", "application/proto")
				r.Header.Set("Connect-Timeout-Ms", "5000")
				if c.authorization != "" {
					r.Header.Set("Authorization", c.authorization)
				}
				c.handler.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}
