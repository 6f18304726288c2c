package runner

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/chaos/check"
	"github.com/quorate/quorate/chaos/faults"
	quoratev1beta1 "github.com/quorate/quorate/client/gen/quorate/v1beta1"
	"github.com/quorate/quorate/client/gen/quorate/v1beta1/quoratev1beta1connect"
)

// webhookName is the name of the webhook, and of its secret.
const webhookName = "chaos"

// awayFor and hereFor are how long the receiver refuses and takes deliveries in turn. Leaders die while it is away, so
// that a cursor that is in front of the receiver shows.
const awayFor, hereFor = 4 * time.Second, 2 * time.Second

// makeWebhookSecret writes the secret of the receiver, and returns the settings of the servers. Older servers ignore
// them.
func (r *activeRun) makeWebhookSecret() ([]string, error) {
	dir, err := filepath.Abs(filepath.Join(r.Dir, "webhooks"))
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		text := base64.StdEncoding.EncodeToString(webhookSecret)
		err = os.WriteFile(filepath.Join(dir, webhookName), []byte(text), 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("write the secret of the webhook: %w", err)
	}
	return []string{"QUORATE_SERVER_WEBHOOK_HOSTS=http://127.0.0.1:*", "QUORATE_SERVER_WEBHOOK_SECRETS_DIR=" + dir}, nil
}

// webhookSecret signs deliveries in runs.
var webhookSecret = []byte("webhooks of chaos, 32 bytes long")

type receiver struct {
	server *http.Server
	url    string
	began  time.Time
	calls  func(node int) quoratev1beta1connect.WebhookServiceClient
	nodes  int

	mu         sync.Mutex
	deliveries check.Deliveries
	bodies     map[string]string
	stays      bool // it takes all deliveries from now on
}

// startReceiver serves the receiver and adds the webhook. Clusters that begin with an older server have none.
func (r *activeRun) startReceiver(ctx context.Context) error {
	if r.Old != "" {
		r.result.Without = append(r.result.Without, "webhooks: a run that begins with an older server has none")
		return nil
	}
	listeners, address, err := r.cluster.ListenForNodes()
	if err != nil {
		return fmt.Errorf("open the receiver of webhooks: %w", err)
	}
	urls := r.cluster.URLs()
	v := &receiver{url: "http://" + address + "/", began: time.Now(), bodies: map[string]string{}, nodes: len(urls)}
	client := connect.HTTPClient(http.DefaultClient)
	if r.accounts != nil {
		client = r.accounts.AdminHTTP()
	}
	v.calls = func(node int) quoratev1beta1connect.WebhookServiceClient {
		return quoratev1beta1connect.NewWebhookServiceClient(client, urls[node%len(urls)])
	}
	v.server = &http.Server{Handler: v, ReadHeaderTimeout: time.Minute}
	for _, listener := range listeners {
		go v.serve(listener)
	}
	r.receiver = v
	return v.addWebhook(ctx, r.Patience)
}

func (v *receiver) serve(listener net.Listener) {
	if err := v.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.deliveries.Unfinished = "the receiver failed: " + err.Error()
	}
}

func (v *receiver) close() {
	if v != nil {
		_ = v.server.Close() // what is still sent is not part of the run
	}
}

// addWebhook adds the webhook, as soon as the cluster serves.
func (v *receiver) addWebhook(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	spec := &quoratev1beta1.WebhookSpec{Name: webhookName, Url: v.url, Secret: webhookName}
	for i := 0; ; i++ {
		answer, err := v.calls(i).SetWebhook(ctx, &quoratev1beta1.SetWebhookRequest{Webhook: spec})
		if err == nil {
			v.deliveries.From = answer.GetWrite().GetIndex()
			return nil
		}
		if faults.Sleep(ctx, 200*time.Millisecond); ctx.Err() != nil {
			return fmt.Errorf("add the webhook: %w", err)
		}
	}
}

// ServeHTTP takes deliveries in turns.
func (v *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(io.LimitReader(q.Body, 1<<20))
	v.mu.Lock()
	defer v.mu.Unlock()
	if isAway := time.Since(v.began)%(awayFor+hereFor) > hereFor; err != nil || isAway && !v.stays {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	id := q.Header.Get("Webhook-Id")
	mac := hmac.New(sha256.New, webhookSecret)
	mac.Write(fmt.Appendf(nil, "%s.%s.%s", id, q.Header.Get("Webhook-Timestamp"), body))
	if q.Header.Get("Webhook-Signature") != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) {
		v.deliveries.Wrong = append(v.deliveries.Wrong, id+" has a bad signature")
	}
	if known, again := v.bodies[id]; !again {
		v.bodies[id] = string(body)
		v.addDelivery(id, body)
	} else if known != string(body) {
		v.deliveries.Wrong = append(v.deliveries.Wrong, id+" came again with another body")
	}
}

type deliveredBody struct {
	Type string
	Data struct {
		Index        uint64 `json:",string"`
		Number       uint32
		After, Until struct {
			Index uint64 `json:",string"`
		}
		Change struct {
			Allocation struct {
				ID    string
				Fence uint64 `json:",string"`
			}
		}
	}
}

func (v *receiver) addDelivery(id string, body []byte) {
	var d deliveredBody
	if err := json.Unmarshal(body, &d); err != nil {
		v.deliveries.Wrong = append(v.deliveries.Wrong, fmt.Sprintf("%s is not JSON: %v", id, err))
		return
	}
	if d.Type == "gap" {
		v.deliveries.Gaps = append(v.deliveries.Gaps, check.DeliveryGap{After: d.Data.After.Index, Until: d.Data.Until.Index})
		return
	}
	of := d.Data.Change.Allocation
	v.deliveries.Events = append(v.deliveries.Events, check.Delivery{
		Index: d.Data.Index, Number: d.Data.Number, Type: d.Type, ID: of.ID, Fence: of.Fence,
	})
}

// finish takes all deliveries until nothing is left to deliver, and returns what came in the run.
func (v *receiver) finish(ctx context.Context, patience time.Duration) check.Deliveries {
	v.mu.Lock()
	v.stays = true
	v.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	unfinished := "the webhook cannot be read"
	for i := 0; ctx.Err() == nil && unfinished != ""; i++ {
		answer, err := v.calls(i).ListWebhooks(ctx, &quoratev1beta1.ListWebhooksRequest{})
		switch {
		case err != nil:
			unfinished = "the webhook cannot be read: " + err.Error()
		case len(answer.GetWebhooks()) != 1:
			unfinished = fmt.Sprintf("there are %d webhooks", len(answer.GetWebhooks()))
		case answer.GetWebhooks()[0].GetForgotten() || answer.GetWebhooks()[0].GetBehind() > 0:
			unfinished = fmt.Sprintf("the webhook is %d events behind: %s", answer.GetWebhooks()[0].GetBehind(),
				answer.GetWebhooks()[0].GetLastError())
		default:
			unfinished = ""
		}
		faults.Sleep(ctx, 200*time.Millisecond)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.deliveries.Unfinished == "" {
		v.deliveries.Unfinished = unfinished
	}
	return v.deliveries
}
