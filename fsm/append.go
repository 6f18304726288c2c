package fsm

import (
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/quorate/quorate/quota"
)

// The frequent commands are written without the messages of entry.proto in between: building those and measuring them
// is most of the time of the standard encoder. The bytes are the same: fields in the order of their numbers, zero
// values left out. encode.go writes all other commands, and reports what cannot be encoded.

// appendCommands appends commands as fields of an entry. It reports false, and what it appended means nothing, if one
// of them is not frequent or has a text that is not valid UTF-8.
func appendCommands(to []byte, commands []quota.Command) ([]byte, bool) {
	w := fieldWriter{data: to}
	for _, c := range commands {
		entryField := w.beginMessage(4)
		switch c := c.(type) {
		case quota.Allocate:
			body := w.beginMessage(1)
			w.writeAllocate(c)
			w.endMessage(body)
		case quota.Release:
			body := w.beginMessage(2)
			w.writeText(1, c.ID)
			for _, item := range c.Items {
				w.writeItemName(2, item)
			}
			w.writeText(3, c.ItemState)
			w.writeNumber(4, c.Fence)
			w.endMessage(body)
		case quota.Renew:
			body := w.beginMessage(12)
			w.writeRenew(c)
			w.endMessage(body)
		default:
			return nil, false
		}
		w.endMessage(entryField)
	}
	return w.data, !w.invalid
}

func (w *fieldWriter) writeAllocate(c quota.Allocate) {
	w.writeText(1, c.ID)
	for _, claim := range c.Claims {
		body := w.beginMessage(2)
		w.writeClaim(claim)
		w.endMessage(body)
	}
	w.writeLabels(3, c.Labels)
	if !isNobody(c.Principal) {
		body := w.beginMessage(4)
		w.writeText(1, c.Principal.User)
		w.writeTexts(2, c.Principal.Groups)
		w.writeText(3, c.Principal.Application)
		w.endMessage(body)
	}
	w.writeNumber(5, uint64(c.Mode))
	w.writeNumber(6, uint64(c.ReserveFor))
	w.writeNumber(7, uint64(c.TTL))
	w.writeNumber(8, uint64(c.WaitFor))
	w.writeNumber(9, uint64(c.Keep))
	w.writeNumber(10, protowire.EncodeZigZag(c.Priority))
	w.writeLabels(11, c.Data)
	w.writeNumber(70, uint64(c.For))
	for _, list := range c.AnyOf {
		listField := w.beginMessage(90)
		for _, claim := range list {
			body := w.beginMessage(1)
			w.writeClaim(claim)
			w.endMessage(body)
		}
		w.endMessage(listField)
	}
}

func (w *fieldWriter) writeClaim(c quota.Claim) {
	w.writeText(1, c.Tree)
	w.writeText(2, c.Node)
	for _, amount := range c.Amounts {
		body := w.beginMessage(3)
		w.writeText(1, amount.Resource)
		w.writeNumber(2, uint64(amount.Amount))
		w.endMessage(body)
	}
	w.writeNumber(4, protowire.EncodeZigZag(c.Priority))
	w.writeNumber(5, protowire.EncodeZigZag(c.Type))
	w.writeNumber(6, protowire.EncodeBool(c.Unpreemptable))
	for _, pick := range c.Picks {
		body := w.beginMessage(7)
		w.writeText(1, pick.Resource)
		w.writeNumber(2, uint64(pick.Count))
		w.writeText(3, pick.State)
		w.writeTexts(4, pick.Names)
		w.writeText(5, pick.HeldState)
		w.endMessage(body)
	}
	for _, r := range c.Ranges {
		body := w.beginMessage(40)
		w.writeText(1, r.Resource)
		w.writeNumber(2, uint64(r.Most))
		w.writeNumber(3, uint64(r.Step))
		w.endMessage(body)
	}
}

func (w *fieldWriter) writeRenew(c quota.Renew) {
	w.writeText(1, c.ID)
	w.writeNumber(2, c.Fence)
	w.writeNumber(3, uint64(c.TTL))
	w.writeLabels(4, c.Data)
	for _, update := range c.Items {
		body := w.beginMessage(5)
		w.writeItemName(1, update.Item)
		w.writeText(2, update.State)
		w.writeLabels(3, update.Data)
		w.endMessage(body)
	}
}

func (w *fieldWriter) writeItemName(number protowire.Number, n quota.ItemName) {
	body := w.beginMessage(number)
	w.writeText(1, n.Tree)
	w.writeText(2, n.Resource)
	w.writeText(3, n.Name)
	w.endMessage(body)
}

func (w *fieldWriter) writeLabels(number protowire.Number, labels []quota.Label) {
	for _, l := range labels {
		body := w.beginMessage(number)
		w.writeText(1, l.Key)
		w.writeText(2, l.Value)
		w.endMessage(body)
	}
}

type fieldWriter struct {
	data []byte
	// invalid is true after a text that is not UTF-8, which protobuf does not encode.
	invalid bool
}

func (w *fieldWriter) writeNumber(number protowire.Number, value uint64) {
	if value != 0 {
		w.data = protowire.AppendVarint(protowire.AppendTag(w.data, number, protowire.VarintType), value)
	}
}

func (w *fieldWriter) writeText(number protowire.Number, text string) {
	if text != "" {
		w.writeElement(number, text)
	}
}

// writeTexts does not leave out empty texts.
func (w *fieldWriter) writeTexts(number protowire.Number, texts []string) {
	for _, text := range texts {
		w.writeElement(number, text)
	}
}

func (w *fieldWriter) writeElement(number protowire.Number, text string) {
	w.invalid = w.invalid || !utf8.ValidString(text)
	w.data = protowire.AppendString(protowire.AppendTag(w.data, number, protowire.BytesType), text)
}

// beginMessage leaves one byte for the length: most are short.
func (w *fieldWriter) beginMessage(number protowire.Number) (start int) {
	w.data = append(protowire.AppendTag(w.data, number, protowire.BytesType), 0)
	return len(w.data)
}

// endMessage writes the length of the message that began at start, which moves a long one.
func (w *fieldWriter) endMessage(start int) {
	length := len(w.data) - start
	if length < 1<<7 {
		w.data[start-1] = byte(length)
		return
	}
	var prefix [10]byte
	w.data = slices.Replace(w.data, start-1, start, protowire.AppendVarint(prefix[:0], uint64(length))...)
}
