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

// BenchmarkAdmit measures the work for each call before it is decoded: observation, taking a place, and reading a small
// body.
func BenchmarkAdmit(b *testing.B) {
	server, err := New(Config{
		Node: &fakeNode{fakeCluster: newFakeCluster(), id: "n1"}, ClusterName: "test", Logger: hclog.NewNullLogger(),
		Metrics: http.NotFoundHandler(), Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		b.Fatal(err)
	}
	handler := server.receiveCalls(server.admission.AdmitCall(server.admission.LimitBody(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))))
	body := strings.Repeat(" ", 200)
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			r := httptest.NewRequest(http.MethodPost, allocatePath, io.NopCloser(strings.NewReader(body)))
			r.ContentLength = int64(len(body))
			handler.ServeHTTP(httptest.NewRecorder(), r)
		}
	})
}
