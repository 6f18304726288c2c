package admission

import (
	"io"
	"net/http"
	"time"

	"github.com/quorate/quorate/rpc/procedures"
)

// toolSpan is how long a stream of gRPC's reflection lasts: tools ask it a few questions and go.
const toolSpan = time.Minute

// LimitTools ends streams of gRPC's reflection and health that are silent or last too long.
func (a *Controller) LimitTools(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.procedures[r.URL.Path].Kind != procedures.ServesTools {
			next.ServeHTTP(w, r)
			return
		}
		control, end := http.NewResponseController(w), time.Now().Add(toolSpan)
		_ = control.SetWriteDeadline(end) // a recorded connection has no deadlines
		r.Body = &deadlineBody{ReadCloser: r.Body, control: control, patience: a.Pacing.Tool, end: end}
		next.ServeHTTP(w, r)
	})
}

// deadlineBody is a body whose next part must come soon.
type deadlineBody struct {
	io.ReadCloser

	control  *http.ResponseController
	patience time.Duration
	end      time.Time
}

func (b *deadlineBody) Read(p []byte) (int, error) {
	due := time.Now().Add(b.patience)
	if due.After(b.end) {
		due = b.end
	}
	_ = b.control.SetReadDeadline(due) // a recorded connection has no deadlines
	return b.ReadCloser.Read(p)
}
