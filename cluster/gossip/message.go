package gossip

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hashicorp/memberlist"

	"github.com/quorate/quorate/cluster"
)

// The message types of memberlist (its net.go) that members send each other, or that appear in errors.
const (
	pingMessage         = 0
	indirectPingMessage = 1
	ackMessage          = 2
	suspectMessage      = 3
	aliveMessage        = 4
	deadMessage         = 5
	pushPullMessage     = 6
	compoundMessage     = 7
	compressedMessage   = 9
	encryptedMessage    = 10
	nackMessage         = 11
	checksumMessage     = 12
	errorMessage        = 13
)

const (
	// maxPacket is the maximum size of an accepted datagram: members send at most 1,400 bytes plus the overhead of
	// encryption.
	maxPacket = 4096
	// maxState is the maximum size of an accepted push/pull state: maxNames nodes of maximum size.
	maxState = maxNames * 1024
	// encryptionVersion is the only version of memberlist's encryption that members use; version 0 has padding.
	encryptionVersion = 1
	nonceBytes        = 12
	versionSize       = 6 // of the six protocol versions of a node
)

// acceptedKeys are the keys of which one must have encrypted a message; plain is true if plain text is accepted too.
// Without keys only plain text is accepted.
type acceptedKeys struct {
	keys  [][]byte
	plain bool
}

var (
	errCompressed = errors.New(
		"it is compressed; members do not compress, and what inflates could take any amount of " +
			"memory")
	errEmpty      = errors.New("it is empty")
	errEncryption = errors.New("it is not encrypted with a key of this node")
)

// checkPacket returns an error for a datagram that members could not have sent. memberlist gets no others, because it
// inflates compressed messages without a bound, and some truncated messages crash it (docs/adr/0053).
func checkPacket(data []byte, keys acceptedKeys) error {
	if len(data) > maxPacket {
		return fmt.Errorf("it has %d bytes, members send less than %d", len(data), maxPacket)
	}
	if len(keys.keys) > 0 {
		switch plain, err := decryptMessage(data, nil, keys.keys); {
		case err == nil:
			data = plain
		case !keys.plain:
			return err
		}
	}
	if len(data) > 5 && data[0] == checksumMessage {
		data = data[5:]
	}
	if len(data) == 0 {
		return errEmpty
	}
	if data[0] != compoundMessage {
		return checkMessage(data)
	}
	return checkCompound(data[1:])
}

// checkCompound checks each message of a compound datagram: a count, the sizes, then the messages.
func checkCompound(data []byte) error {
	if len(data) == 0 || len(data) < 1+2*int(data[0]) {
		return errEmpty
	}
	count := int(data[0])
	sizes, rest := data[1:1+2*count], data[1+2*count:]
	for i := range count {
		size := int(binary.BigEndian.Uint16(sizes[2*i:]))
		if size > len(rest) {
			return errors.New("the last of its messages are cut off")
		}
		if err := checkMessage(rest[:size]); err != nil {
			return err
		}
		rest = rest[size:]
	}
	return nil
}

func checkMessage(data []byte) error {
	if len(data) == 0 {
		return errEmpty
	}
	switch data[0] {
	case compressedMessage:
		return errCompressed
	case pingMessage, indirectPingMessage, ackMessage, nackMessage, suspectMessage, aliveMessage, deadMessage:
	default:
		return fmt.Errorf("it has type %d, which members do not send so", data[0])
	}
	body := &memorySource{data[1:]}
	fields, err := readFields(body)
	switch {
	case err != nil:
		return fmt.Errorf("a message of type %d: %w", data[0], err)
	case len(body.rest) > 0:
		return fmt.Errorf("a message of type %d has %d bytes after its end", data[0], len(body.rest))
	}
	return checkFields(data[0], fields)
}

// checkFields checks the fields that memberlist uses without checking them.
func checkFields(kind byte, fields map[string]field) error {
	switch kind {
	case aliveMessage:
		return checkNode(fields, "Node")
	case suspectMessage, deadMessage:
		return errors.Join(checkName(fields, "Node"), checkName(fields, "From"))
	case indirectPingMessage:
		return checkAddress(fields, "Target")
	}
	return nil
}

func checkNode(fields map[string]field, name string) error {
	err := errors.Join(checkName(fields, name), checkAddress(fields, "Addr"))
	if size := len(fields["Meta"].text); size > memberlist.MetaMaxSize {
		err = errors.Join(
			err, fmt.Errorf("a node has %d bytes of metadata, more than %d", size, memberlist.MetaMaxSize))
	}
	if size := len(fields["Vsn"].text); size != versionSize {
		err = errors.Join(err, fmt.Errorf("a node has %d versions, which must be %d", size, versionSize))
	}
	return err
}

func checkName(fields map[string]field, name string) error {
	return cluster.CheckName(name, string(fields[name].text))
}

func checkAddress(fields map[string]field, name string) error {
	if size := len(fields[name].text); size != 4 && size != 16 {
		return fmt.Errorf("%s has %d bytes, which is not an IP address", name, size)
	}
	return nil
}

// checkState reads one message of a stream to its end and returns an error if members could not have sent it.
func checkState(kind byte, from byteSource) error {
	switch kind {
	case compressedMessage:
		return errCompressed
	case pingMessage, ackMessage, errorMessage:
		_, err := readFields(from)
		return err
	case pushPullMessage:
		return checkNodes(from)
	default:
		return fmt.Errorf("it has type %d, which members do not send so", kind)
	}
}

func checkNodes(from byteSource) error {
	header, err := readFields(from)
	if err != nil {
		return err
	}
	count, extra := header["Nodes"].number, header["UserStateLen"].number
	if count < 0 || count > maxNames || extra != 0 {
		return fmt.Errorf(
			"it describes %d nodes and has %d bytes of user state; allowed are %d nodes and no user state",
			count, extra, maxNames)
	}
	for range count {
		fields, err := readFields(from)
		if err != nil {
			return err
		}
		if err := checkNode(fields, "Name"); err != nil {
			return err
		}
	}
	return nil
}

// decryptMessage decrypts as memberlist does: AES-GCM with the first key that fits.
func decryptMessage(data, also []byte, keys [][]byte) ([]byte, error) {
	if len(data) < 1+nonceBytes || data[0] != encryptionVersion {
		return nil, errEncryption
	}
	for _, key := range keys {
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("a key of gossip: %w", err)
		}
		gcm, err := cipher.NewGCM(block)
		if err != nil {
			return nil, fmt.Errorf("a key of gossip: %w", err)
		}
		if plain, err := gcm.Open(nil, data[1:1+nonceBytes], data[1+nonceBytes:], also); err == nil {
			return plain, nil
		}
	}
	return nil, errEncryption
}
