// Package forge makes the messages of a hostile gossip peer: messages of any node in the format of memberlist, and
// others that no node sends. The tests of cluster/gossip, the attacks of chaos/hostile and one fault of chaos use it.
package forge

import (
	"bytes"
	"compress/lzw"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net"

	"github.com/hashicorp/go-msgpack/v2/codec"
)

// Message types of memberlist, see net.go there.
const (
	pingType       = 0
	aliveType      = 4
	deadType       = 5
	pushPullType   = 6
	compoundType   = 7
	compressedType = 9
	encryptedType  = 10
	checksumType   = 12
	labelType      = 244
)

// Versions are the protocol versions that a node announces.
var Versions = []byte{1, 5, 2, 0, 0, 0}

// Meta is what a Quorate node gossips about itself. Zero values are left out.
type Meta struct {
	Cluster  string `json:"c"`
	RaftAddr string `json:"r"`
	HTTPAddr string `json:"h"`
	Version  string `json:"v"`
	Level    uint32 `json:"l"`
	Expect   int    `json:"e,omitempty"`
	HasState bool   `json:"s,omitempty"`
	Intent   string `json:"i,omitempty"`
	// ClusterLevel, Checkpoint and Digest are fields that nodes do not know.
	ClusterLevel uint32 `json:"f,omitempty"`
	Checkpoint   uint64 `json:"x,omitempty"`
	Digest       string `json:"d,omitempty"`
}

// Node is the node that a message is about.
type Node struct {
	Name        string
	Addr        *net.UDPAddr // its gossip address
	Incarnation uint32
	Meta        Meta
	Versions    []byte // Versions if nil
}

type aliveMessage struct {
	Incarnation uint32
	Node        string
	Addr        []byte
	Port        uint16
	Meta        []byte
	Vsn         []byte
}

type nodeState struct {
	Name        string
	Addr        []byte
	Port        uint16
	Meta        []byte
	Incarnation uint32
	State       int
	Vsn         []byte
}

type pushPullHeader struct {
	Nodes        int
	UserStateLen int
	Join         bool
}

type compressedMessage struct {
	Algo uint8
	Buf  []byte
}

// encodeMessage can encode all types of this package.
func encodeMessage(kind byte, value any) []byte {
	out := bytes.NewBuffer([]byte{kind})
	if err := codec.NewEncoder(out, &codec.MsgpackHandle{}).Encode(value); err != nil {
		panic(fmt.Sprintf("forge: encode %T: %v", value, err))
	}
	return out.Bytes()
}

func (m Meta) encodeJSON() []byte {
	data, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("forge: encode %+v: %v", m, err))
	}
	return data
}

func (n Node) versionsOrDefault() []byte {
	if n.Versions == nil {
		return Versions
	}
	return n.Versions
}

// Alive announces that a node is alive, with all its data.
func Alive(n Node) []byte {
	return encodeMessage(aliveType, aliveMessage{
		n.Incarnation, n.Name, n.Addr.IP.To4(), uint16(n.Addr.Port),
		n.Meta.encodeJSON(), n.versionsOrDefault(),
	})
}

// Dead announces, in the name of one node, that another is dead.
func Dead(name, from string, incarnation uint32) []byte {
	return encodeMessage(deadType, struct {
		Incarnation uint32
		Node, From  string
	}{incarnation, name, from})
}

// Ping probes a node.
func Ping(name string) []byte {
	return encodeMessage(pingType, struct {
		SeqNo uint32
		Node  string
	}{7, name})
}

// PushPull is the state of all nodes as sent over a stream. extra is the announced size of what follows.
func PushPull(nodes []Node, claimed, extra int) []byte {
	out := encodeMessage(pushPullType, pushPullHeader{Nodes: claimed, UserStateLen: extra, Join: true})
	for _, n := range nodes {
		out = append(out, encodeMessage(0, nodeState{
			n.Name, n.Addr.IP.To4(), uint16(n.Addr.Port), n.Meta.encodeJSON(), n.Incarnation, 0, n.versionsOrDefault(),
		})[1:]...)
	}
	return out
}

// Compound combines several messages into one.
func Compound(messages ...[]byte) []byte {
	out := []byte{compoundType, byte(len(messages))}
	for _, m := range messages {
		out = binary.BigEndian.AppendUint16(out, uint16(len(m)))
	}
	return append(out, bytes.Join(messages, nil)...)
}

// Compressed compresses a message, which members never do.
func Compressed(message []byte) []byte {
	var packed bytes.Buffer
	to := lzw.NewWriter(&packed, lzw.LSB, 8)
	if _, err := to.Write(message); err != nil {
		panic(err)
	}
	if err := to.Close(); err != nil {
		panic(err)
	}
	return encodeMessage(compressedType, compressedMessage{Buf: packed.Bytes()})
}

// Bomb is a short message that inflates to so many zero bytes.
func Bomb(inflated int) []byte { return Compressed(make([]byte, inflated)) }

// Checksummed adds a checksum to a message.
func Checksummed(message []byte) []byte {
	out := binary.BigEndian.AppendUint32([]byte{checksumType}, crc32.ChecksumIEEE(message))
	return append(out, message...)
}

// Labelled adds a label to a message.
func Labelled(name string, message []byte) []byte {
	return append(append([]byte{labelType, byte(len(name))}, name...), message...)
}

// Encrypted encrypts a datagram with a gossip key.
func Encrypted(key, message []byte) []byte { return encryptMessage(key, message, nil) }

// EncryptedStream encrypts a stream message with a gossip key.
func EncryptedStream(key, message []byte) []byte {
	head := binary.BigEndian.AppendUint32([]byte{encryptedType}, uint32(1+12+len(message)+16))
	return append(head, encryptMessage(key, message, head)...)
}

func encryptMessage(key, message, also []byte) []byte {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	nonce := make([]byte, gcm.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		panic(err)
	}
	return gcm.Seal(append([]byte{1}, nonce...), nonce, message, also)
}
