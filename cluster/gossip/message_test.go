package gossip

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-msgpack/v2/codec"

	"github.com/quorate/quorate/cluster/gossip/forge"
)

var (
	testKey  = bytes.Repeat([]byte{'k'}, 32)
	otherKey = bytes.Repeat([]byte{'o'}, 32)
)

func testNode(name string) forge.Node {
	return forge.Node{
		Name: name, Addr: &net.UDPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 7000}, Incarnation: 7,
		Meta: forge.Meta{Cluster: "c", RaftAddr: "n1:1", HTTPAddr: "n1:2", Version: "v"},
	}
}

// nodeWithVersions is a node with that many protocol versions; memberlist reads six without checking the length.
func nodeWithVersions(count int) forge.Node {
	n := testNode("n1")
	n.Versions = make([]byte, count)
	return n
}

// TestOnlyWhatMembersSendIsHeard sends each datagram as it is, with a checksum, encrypted, and both.
func TestOnlyWhatMembersSendIsHeard(t *testing.T) {
	alive := forge.Alive(testNode("n1"))
	bomb := forge.Bomb(1 << 20)
	for _, c := range []struct {
		name   string
		packet []byte
		refuse string // empty if it passes
	}{
		{"alive", alive, ""},
		{"ping", forge.Ping("n1"), ""},
		{"dead", forge.Dead("n1", "n2", 7), ""},
		{"compound", forge.Compound(alive, forge.Ping("n1")), ""},
		{"compressed", forge.Compressed(alive), "compressed"},
		{"a bomb", bomb, "compressed"},
		{"a bomb in a compound", forge.Compound(forge.Ping("n1"), bomb), "compressed"},
		{"a bomb in a compound in a compound", forge.Compound(forge.Compound(bomb)), "type 7"},
		{"a bomb after two checksums", forge.Checksummed(bomb), ""}, // see below
		{"a bomb after a label", forge.Labelled("x", bomb), "type 244"},
		{"five versions", forge.Alive(nodeWithVersions(5)), "5 versions"},
		{"no versions", forge.Alive(nodeWithVersions(0)), "0 versions"},
		{"no name", forge.Alive(testNode("")), "Node is"},
		{"a name with a line break", forge.Alive(testNode("n1\nn2")), "Node is"},
		{"a long name", forge.Alive(testNode(strings.Repeat("n", 65))), "Node is"},
		{"empty", nil, "empty"},
		{"an empty compound", []byte{compoundMessage}, "empty"},
		{"a compound that is cut off", forge.Compound(alive)[:20], "cut off"},
		{"data after the end", append(bytes.Clone(alive), 0), "after its end"},
		{"cut off", alive[:len(alive)-1], "unexpected EOF"},
		{"an array", []byte{aliveMessage, 0x96, 0, 0, 0, 0, 0, 0}, "not a map"},
		{"a field twice", []byte{ackMessage, 0x82, 0xa1, 'a', 1, 0xa1, 'a', 1}, "is duplicated"},
		{"a map in a map", []byte{ackMessage, 0x81, 0xa1, 'a', 0x81, 0xa1, 'a', 1}, "neither a text nor a number"},
		{
			"four gigabytes that do not come",
			[]byte{ackMessage, 0x81, 0xa1, 'a', 0xc6, 0xff, 0xff, 0xff, 0xff},
			"longer than",
		},
		{"a message of users", []byte{8, 'x'}, "type 8"},
		{"long", make([]byte, maxPacket+1), "members send less"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "a bomb after two checksums" {
				c.refuse, c.packet = "type 12", forge.Checksummed(c.packet)
			}
			wantPacketCheck(t, c.packet, c.refuse)
			if c.name == "long" || c.packet == nil {
				return
			}
			if c.packet[0] != checksumMessage {
				wantPacketCheck(t, forge.Checksummed(c.packet), c.refuse)
				wantPacketCheck(t, forge.Encrypted(testKey, forge.Checksummed(c.packet)), c.refuse, otherKey, testKey)
			}
			wantPacketCheck(t, forge.Encrypted(testKey, c.packet), c.refuse, testKey)
			wantPacketCheck(t, forge.Encrypted(testKey, c.packet), "not encrypted with a key", otherKey)
			wantPacketCheck(t, c.packet, "not encrypted with a key", testKey)
		})
	}
	wantPacketCheck(t, forge.Encrypted(testKey, nil), "empty", testKey)
	padded := forge.Encrypted(testKey, alive)
	padded[0] = 0
	wantPacketCheck(t, padded, "not encrypted with a key", testKey)
}

func wantPacketCheck(t *testing.T, packet []byte, refuse string, keys ...[]byte) {
	t.Helper()
	err := checkPacket(packet, acceptedKeys{keys: keys})
	if refuse == "" && err != nil || refuse != "" && (err == nil || !strings.Contains(err.Error(), refuse)) {
		t.Errorf("%d bytes, %d keys: got %v, want %q", len(packet), len(keys), err, refuse)
	}
}

// TestOnlyStatesOfMembersAreHeard does the same for streams. Nothing is read after the end of an accepted message, and
// a refused one yields no data.
func TestOnlyStatesOfMembersAreHeard(t *testing.T) {
	nodes := []forge.Node{testNode("n1"), testNode("n2")}
	var many []forge.Node
	for i := range maxNames + 1 {
		many = append(many, testNode(fmt.Sprint("n", i)))
	}
	for _, c := range []struct {
		name, refuse string
		message      []byte
	}{
		{"states", "", forge.PushPull(nodes, 2, 0)},
		{"as many as may be", "", forge.PushPull(many[:maxNames], maxNames, 0)},
		{"ping", "", forge.Ping("n1")},
		{"one too many", "allowed are 64 nodes", forge.PushPull(many, len(many), 0)},
		{"a million that do not come", "allowed are 64 nodes", forge.PushPull(nil, 1_000_000, 0)},
		{"less than none", "allowed are 64 nodes", forge.PushPull(nil, -1, 0)},
		{"something besides", "bytes of user state", forge.PushPull(nodes, 2, 20<<20)},
		{"one version", "1 versions", forge.PushPull([]forge.Node{nodeWithVersions(1)}, 1, 0)},
		{"no versions", "0 versions", forge.PushPull([]forge.Node{nodeWithVersions(0)}, 1, 0)},
		{"a bomb", "compressed", forge.Bomb(1 << 20)},
		{"a message of users", "type 8", []byte{8, 0x81, 0xa1, 'a', 1}},
		{"cut off", "EOF", forge.PushPull(nodes, 3, 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantStreamCheck(t, nil, append(bytes.Clone(c.message), "what follows"...), c.message, c.refuse)
			whole := forge.EncryptedStream(testKey, c.message)
			wantStreamCheck(t, [][]byte{otherKey, testKey}, append(bytes.Clone(whole), "what follows"...),
				whole, c.refuse)
			wantStreamCheck(t, [][]byte{testKey}, c.message, nil, "not encrypted with a key")
			wantStreamCheck(t, [][]byte{otherKey}, whole, nil, "not encrypted with a key")
		})
	}
	wantStreamCheck(t, [][]byte{testKey}, forge.EncryptedStream(testKey, nil), nil, "empty")
	wantStreamCheck(t, [][]byte{testKey}, []byte{encryptedMessage, 0xff, 0xff, 0xff, 0xff}, nil,
		"not encrypted with a key")
}

func wantStreamCheck(t *testing.T, keys [][]byte, sent, want []byte, refuse string) {
	t.Helper()
	here, there := net.Pipe()
	go func() {
		_, _ = there.Write(sent) // what is refused is not read to its end
		_ = there.Close()
	}()
	transport := &checkedTransport{refusals: &refusalLog{log: hclog.NewNullLogger()}}
	if keys != nil {
		ring, err := NewKeyring(keys)
		if err != nil {
			t.Fatal(err)
		}
		transport.keys = ring
	}
	stream := &checkedStream{Conn: here, transport: transport, end: func() {}}
	got, err := io.ReadAll(stream)
	if err2 := stream.Close(); err2 != nil {
		t.Error(err2)
	}
	switch {
	case refuse == "" && (err != nil || !bytes.Equal(got, want)):
		t.Errorf("got %d bytes, %v; want %d", len(got), err, len(want))
	case refuse != "" && (len(got) > 0 || refuse != "EOF" && (err == nil || !strings.Contains(err.Error(), refuse))):
		t.Errorf("got %d bytes, %v; want %q", len(got), err, refuse)
	}
}

// FuzzPacket: no input panics, and accepted input is what memberlist's own decoder reads, with all fields that it
// relies on.
func FuzzPacket(f *testing.F) {
	for _, seed := range [][]byte{
		forge.Alive(testNode("n1")), forge.Dead("n1", "n2", 1), forge.Ping("n1"),
		forge.Compound(forge.Ping("n1"), forge.Alive(testNode("n2"))),
		forge.Bomb(1 << 16), forge.Checksummed(forge.Ping("n1")), forge.PushPull([]forge.Node{testNode("n1")}, 1, 0),
		{0xc1},
		{4, 0x80},
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if checkPacket(data, acceptedKeys{}) == nil && data[0] == aliveMessage {
			var read struct {
				Node      string
				Addr, Vsn []byte
				Meta      []byte
			}
			if err := codec.NewDecoderBytes(data[1:], &codec.MsgpackHandle{}).Decode(&read); err != nil {
				t.Fatalf("%q passed and cannot be read: %v", data, err)
			}
			if read.Node == "" || len(read.Vsn) != versionSize || len(read.Addr) != 4 && len(read.Addr) != 16 ||
				len(read.Meta) > 512 {
				t.Fatalf("%q passed and is read as %+v", data, read)
			}
		}
		from := &streamSource{from: bytes.NewReader(data), left: maxState}
		if len(data) > 0 && checkState(data[0], from) == nil && !bytes.HasPrefix(data, from.kept) {
			t.Fatalf("%q was received as %q", data, from.kept)
		}
		if err := checkPacket(forge.Encrypted(testKey, data),
			acceptedKeys{keys: [][]byte{testKey}}); len(data) < maxPacket-100 &&
			(err == nil) != (checkPacket(data, acceptedKeys{}) == nil) {
			t.Fatalf("%q encrypted: %v", data, err)
		}
	})
}
