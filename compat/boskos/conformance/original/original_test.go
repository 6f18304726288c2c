package original

import (
	"flag"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/boskos/crds"
	"sigs.k8s.io/boskos/handlers"
	"sigs.k8s.io/boskos/ranch"
	fakectrlruntimeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
)

var record = flag.Bool("record", false, "record the exchanges anew from the original")

// TestOriginal lets the original play its own recording: what is in testdata is what it says.
func TestOriginal(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := crds.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	kubernetes := fakectrlruntimeclient.NewClientBuilder().WithScheme(scheme).Build()
	storage := ranch.NewStorage(t.Context(), kubernetes, "test")
	original, err := ranch.NewRanch("", storage, 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if err := original.SyncConfig("../../testdata/exchanges.yaml"); err != nil {
		t.Fatal(err)
	}
	served := httptest.NewServer(handlers.NewBoskosHandler(original))
	defer served.Close()
	play(t, served.URL)
}
