package systems

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"
)

// The few messages of etcd's API (etcdserverpb, version 3) that the comparison needs are encoded by hand: etcd's own
// client would bring a dozen modules into the build of the product. The field numbers are those of etcd's rpc.proto.

// etcdRead reads a key, or all keys from it up to rangeEnd.
type etcdRead struct {
	key, rangeEnd []byte
	countOnly     bool
}

func (r *etcdRead) marshal() []byte {
	b := appendBytes(nil, 1, r.key)
	if r.rangeEnd != nil {
		b = appendBytes(b, 2, r.rangeEnd)
	}
	if r.countOnly {
		b = protowire.AppendVarint(protowire.AppendTag(b, 9, protowire.VarintType), 1)
	}
	return b
}

// etcdPut writes a key, or deletes it if the value is nil.
type etcdPut struct{ key, value []byte }

// etcdGuard requires that a key was last modified at a revision; 0 if it must not exist.
type etcdGuard struct {
	key      []byte
	revision int64
}

// etcdTransaction writes if all guards hold, and reads otherwise.
type etcdTransaction struct {
	guards []etcdGuard
	writes []etcdPut
	reads  []etcdRead
}

func (t *etcdTransaction) marshal() []byte {
	const modRevision = 2
	var b []byte
	for _, g := range t.guards {
		compare := protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.VarintType), modRevision)
		compare = appendBytes(compare, 3, g.key)
		compare = protowire.AppendVarint(protowire.AppendTag(compare, 6, protowire.VarintType), uint64(g.revision))
		b = appendBytes(b, 1, compare)
	}
	for _, w := range t.writes {
		if w.value == nil {
			b = appendBytes(b, 2, appendBytes(nil, 3, appendBytes(nil, 1, w.key)))
		} else {
			b = appendBytes(b, 2, appendBytes(nil, 2, appendBytes(appendBytes(nil, 1, w.key), 2, w.value)))
		}
	}
	for _, r := range t.reads {
		b = appendBytes(b, 3, appendBytes(nil, 1, r.marshal()))
	}
	return b
}

func appendBytes(b []byte, field protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), value)
}

// etcdAnswer is the answer to any of the requests. What a request does not ask for stays empty.
type etcdAnswer struct {
	memberID, leaderID uint64 // of a status
	revision           int64
	succeeded          bool
	pairs              []etcdPair
	count              int64
}

// etcdPair is a key with its value and the revision of its last modification.
type etcdPair struct {
	key, value []byte
	revision   int64
}

type etcdMethod struct {
	path  string
	parse func(*etcdAnswer, []byte) error
}

var ( //nolint:gochecknoglobals // constants
	etcdRangeMethod  = etcdMethod{"/etcdserverpb.KV/Range", parseRange}
	etcdTxnMethod    = etcdMethod{"/etcdserverpb.KV/Txn", parseTxn}
	etcdStatusMethod = etcdMethod{"/etcdserverpb.Maintenance/Status", parseStatus}
)

// etcdClient calls one node over gRPC. It keeps one connection, as etcd's own client does.
type etcdClient struct {
	url  string
	http *http.Client
}

func newEtcdClient(url string) *etcdClient {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return &etcdClient{url, &http.Client{Transport: &http.Transport{Protocols: protocols, DisableCompression: true}}}
}

func (c *etcdClient) call(ctx context.Context, m etcdMethod, request []byte) (*etcdAnswer, error) {
	caller := connect.NewClient[[]byte, etcdAnswer](c.http, c.url+m.path,
		connect.WithGRPC(), connect.WithCodec(etcdCodec{m.parse}), connect.WithAcceptCompression("gzip", nil, nil))
	answer, err := caller.CallUnary(ctx, connect.NewRequest(&request))
	if err != nil {
		return nil, err
	}
	return answer.Msg, nil
}

// etcdCodec sends bytes as they are and parses answers.
type etcdCodec struct {
	parse func(*etcdAnswer, []byte) error
}

// Name is that of protobuf: the bytes are a message of it.
func (etcdCodec) Name() string { return "proto" }

func (etcdCodec) Marshal(message any) ([]byte, error) {
	b, ok := message.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("%T is not an encoded request", message)
	}
	return *b, nil
}

func (c etcdCodec) Unmarshal(data []byte, message any) error {
	answer, ok := message.(*etcdAnswer)
	if !ok {
		return fmt.Errorf("%T is not an answer", message)
	}
	return c.parse(answer, data)
}

func parseStatus(a *etcdAnswer, data []byte) error {
	return eachField(data, func(field int, number uint64, text []byte) error {
		switch field {
		case 1: // ResponseHeader
			return eachField(text, func(field int, number uint64, _ []byte) error {
				if field == 2 {
					a.memberID = number
				}
				return nil
			})
		case 4:
			a.leaderID = number
		}
		return nil
	})
}

func parseTxn(a *etcdAnswer, data []byte) error {
	return eachField(data, func(field int, number uint64, text []byte) error {
		switch field {
		case 1:
			return eachField(text, func(field int, number uint64, _ []byte) error {
				if field == 3 {
					a.revision = int64(number)
				}
				return nil
			})
		case 2:
			a.succeeded = number != 0
		case 3: // ResponseOp
			return eachField(text, func(field int, _ uint64, text []byte) error {
				if field == 1 {
					return parseRange(a, text)
				}
				return nil
			})
		}
		return nil
	})
}

func parseRange(a *etcdAnswer, data []byte) error {
	return eachField(data, func(field int, number uint64, text []byte) error {
		switch field {
		case 2:
			var pair etcdPair
			err := eachField(text, func(field int, number uint64, text []byte) error {
				switch field {
				case 1:
					pair.key = text
				case 3:
					pair.revision = int64(number)
				case 5:
					pair.value = text
				}
				return nil
			})
			a.pairs = append(a.pairs, pair)
			return err
		case 4:
			a.count = int64(number)
		}
		return nil
	})
}

var errMalformed = errors.New("the message of etcd is malformed")

// eachField visits only numbers and bytes.
func eachField(data []byte, visit func(field int, number uint64, text []byte) error) error {
	for len(data) > 0 {
		field, kind, size := protowire.ConsumeTag(data)
		if size < 0 {
			return errMalformed
		}
		data = data[size:]
		if size = protowire.ConsumeFieldValue(field, kind, data); size < 0 {
			return errMalformed
		}
		var number uint64
		var text []byte
		if kind == protowire.VarintType {
			number, _ = protowire.ConsumeVarint(data)
		}
		if kind == protowire.BytesType {
			text, _ = protowire.ConsumeBytes(data)
		}
		if err := visit(int(field), number, text); err != nil {
			return err
		}
		data = data[size:]
	}
	return nil
}
