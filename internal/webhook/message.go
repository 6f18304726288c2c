package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

const (
	// MaxBody bounds the body of a delivery. The event of a larger one comes without its details.
	MaxBody = 256 << 10
	// attemptTimeout bounds one attempt, from resolving the host to the end of the answer.
	attemptTimeout = 10 * time.Second
	// maxAnswer is how much of the answer of a receiver is read.
	maxAnswer = 4 << 10
	// gapType is the type of the message that tells of lost events.
	gapType = "gap"
)

// message is one delivery. Its id is the same at each attempt, also by another leader.
type message struct {
	id   string
	body []byte
	// cursor is the position behind it.
	cursor quota.EventPosition
	isGap  bool
}

type envelope struct {
	Type string `json:"type"`
	Data any    `json:"data"`
}

// eventPlace are the details of an event that is too large, and of the ends of a gap.
type eventPlace struct {
	Index     string `json:"index"`
	Number    uint32 `json:"number,omitempty"`
	ID        string `json:"id,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
}

// eventMessage is the message of an event; false if the owner of the webhook may see nothing of it. One whose details
// are too large, or cannot be written, names it only.
func (d *Deliverer) eventMessage(
	ctx context.Context, hook *quota.Webhook, e cluster.WatchEvent,
) (m message, seen bool, err error) {
	m = message{
		id: fmt.Sprintf("%s-%d-%d", d.config.ClusterName, e.Index, e.Number), cursor: positionOf(e.Position),
	}
	var details []byte
	_, failed := d.config.Node.Read(ctx, cluster.ReadOptions{Stale: true}, func(v ledger.Reader) {
		details, err = d.config.Encode(v, hook, e)
	})
	if failed != nil || err == nil && details == nil {
		return m, false, failed
	}
	if err == nil {
		m.body = marshalEnvelope(d.config.TypeOf(e), json.RawMessage(details))
	}
	if err != nil || len(m.body) > MaxBody {
		m.body = marshalEnvelope(d.config.TypeOf(e), eventPlace{
			Index: strconv.FormatUint(e.Index, 10), Number: e.Number, ID: idOf(e), Truncated: true,
		})
	}
	return m, true, nil
}

func marshalEnvelope(name string, data any) []byte {
	body, err := json.Marshal(envelope{Type: name, Data: data})
	if err != nil {
		panic(fmt.Sprintf("webhook: the details of %s are not JSON: %v", name, err)) // a mistake of Config.Encode
	}
	return body
}

func idOf(e cluster.WatchEvent) string {
	switch {
	case e.Event != nil:
		return e.Event.ID
	case e.Allocation == nil:
		return ""
	}
	return e.Allocation.ID()
}

// gapMessage tells that the events between two positions are not remembered.
func (d *Deliverer) gapMessage(from, to quota.EventPosition) message {
	after, until := placeOf(from), placeOf(to)
	return message{
		id:   fmt.Sprintf("%s-%s-%d-gap", d.config.ClusterName, after.Index, after.Number),
		body: marshalEnvelope(gapType, map[string]eventPlace{"after": after, "until": until}), cursor: to, isGap: true,
	}
}

// placeOf is a position for receivers: without a number it is behind all events of the index.
func placeOf(p quota.EventPosition) eventPlace {
	if p.Number == math.MaxUint32 {
		p.Number = 0
	}
	return eventPlace{Index: strconv.FormatUint(p.Index, 10), Number: p.Number}
}

// newClient returns a client that follows no redirect, uses no proxy, and connects only where hosts allow it.
func newClient(hosts Hosts) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext: hosts.dial, TLSHandshakeTimeout: dialTimeout, ResponseHeaderTimeout: attemptTimeout,
			MaxResponseHeaderBytes: 16 << 10, DisableCompression: true, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       attemptTimeout,
	}
}

// post treats a code of the class 2xx as the acknowledgement.
func (d *Deliverer) post(ctx context.Context, spec quota.WebhookSpec, m message) error {
	if err := d.config.Hosts.Check(spec.URL); err != nil {
		return err
	}
	secrets, err := readSecrets(d.config.SecretsDir, spec.Secret)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, spec.URL, bytes.NewReader(m.body))
	if err != nil {
		return withoutURL(err)
	}
	seconds := time.Now().Unix()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "quorate")
	r.Header.Set("Webhook-Id", m.id)
	r.Header.Set("Webhook-Timestamp", strconv.FormatInt(seconds, 10))
	r.Header.Set("Webhook-Signature", signMessage(secrets, m.id, seconds, m.body))
	answer, err := d.client.Do(r)
	if err != nil {
		return withoutURL(err)
	}
	defer func() { _ = answer.Body.Close() }()                         // the code was read
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer)) // so that the connection can be used again
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the receiver answered %s", strings.ToValidUTF8(answer.Status, "?"))
	}
	return nil
}

// withoutURL is an error without the address, which may have a secret in its query.
func withoutURL(err error) error {
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return failed.Err
	}
	return err
}
