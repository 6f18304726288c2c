package server

import (
	"io/fs"
	"net/http"

	"github.com/quorate/quorate/rpc"
	"github.com/quorate/quorate/web"
	"github.com/quorate/quorate/web/plain"
)

// newDashboard is nil for none.
func newDashboard(s Settings, p Process) (http.Handler, error) {
	if s.UI == uiOff {
		return nil, nil
	}
	if p.Dashboard != nil {
		return readAgain(p.Dashboard, s.UI), nil
	}
	return web.NewHandler(web.Files(), s.UI)
}

// plainPage is the page without scripts.
var plainPage = rpc.FrontEnd{
	Name: "dashboard", Pattern: plain.Path, WriteError: plain.WriteError,
	NeedsCaller: func(*http.Request) bool { return true }, // without a caller the page would be empty
	New: func(s rpc.Services) http.Handler {
		return plain.NewHandler(plain.API{Cluster: s.Cluster, Trees: s.Trees})
	},
}

// readAgain reads the files for every request, so that who changes them sees the change.
func readAgain(files fs.FS, mode string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, err := web.NewHandler(files, mode)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		h.ServeHTTP(w, r)
	})
}
