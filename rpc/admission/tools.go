package admission

import (
	"io"
	"net/http"
	"time"

	"github.com/quorate/quorate/rpc/pipeline"
	"github.com/quorate/quorate/rpc/procedures"
)

// toolSpan is how long a stream of gRPC's reflection lasts: tools ask it a few questions and go.
const toolSpan = time.Minute

// LimitTools ends streams of gRPC's reflection and health that are silent or last too long.
func (a *Controller) LimitTools(x *pipeline.Exchange) bool {
	if a.procedures[x.Request.URL.Path].Kind != procedures.ServesTools {
		return true
	}
	control, end := http.NewResponseController(x.Writer), time.Now().Add(toolSpan)
	_ = control.SetWriteDeadline(end) // a recorded connection has no deadlines
	x.Request.Body = &deadlineBody{ReadCloser: x.Request.Body, control: control, patience: a.Pacing.Tool, end: end}
	return true
}

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
