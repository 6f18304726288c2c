package rpc

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/handlers"
)

type slowBackups struct{ goOn chan struct{} }

func (b slowBackups) Save(_ context.Context, _ cluster.ReadOptions, out io.Writer) (cluster.BackupInfo, error) {
	<-b.goOn
	_, err := out.Write([]byte("backup"))
	return cluster.BackupInfo{}, err
}

func (slowBackups) Restore(context.Context, cluster.RestoreOptions, io.Reader) (cluster.RestoreResult, error) {
	return cluster.RestoreResult{}, nil
}

// TestTooManyBackups: concurrent backups are limited, because each walks over the whole state.
func TestTooManyBackups(t *testing.T) {
	gates, err := admission.NewLimiters(admission.Limits{}.WithDefaults(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	slow := slowBackups{make(chan struct{})}
	mux := http.NewServeMux()
	mux.Handle(adminv1connect.NewSnapshotServiceHandler(
		handlers.SnapshotService{Backups: slow, Saving: gates.Backups}))
	server := httptest.NewServer(mux)
	defer server.Close()
	save := func() error {
		stream, err := adminv1connect.NewSnapshotServiceClient(server.Client(), server.URL).Save(t.Context(),
			&adminv1.SaveRequest{})
		if err != nil {
			return err
		}
		defer stream.Close() //nolint:errcheck // it is only read
		for stream.Receive() {
		}
		return stream.Err()
	}
	ended := make(chan error)
	for range admission.MaxBackups {
		go func() { ended <- save() }()
	}
	eventually(t, "all are under way", func() bool { return gates.Backups.InUse.Load() == admission.MaxBackups })
	wantOverloaded(t, save(), "all backups together")
	close(slow.goOn)
	for range admission.MaxBackups {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if err := save(); err != nil {
		t.Error(err)
	}
}
