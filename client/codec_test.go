package client_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

func codecMessages() []proto.Message {
	claim := &quoratev1.HeldClaim{Tree: "cern", Node: "physics", Amounts: map[string]int64{"cores": 8, "memory": 1 << 40}}
	granted := &quoratev1.AllocateResponse{
		Write: &quoratev1.WriteInfo{Index: 9, Repetition: true}, Decision: &quoratev1.Decision{Explanation: "größer"},
		Allocation: &quoratev1.Allocation{
			Id: "job-1", Fence: 7, Claims: []*quoratev1.HeldClaim{claim, claim}, Labels: map[string]string{"owner": "ann"},
			GrantedAt: &timestamppb.Timestamp{Seconds: 1, Nanos: 5},
		},
	}
	return []proto.Message{
		&quoratev1.AllocateRequest{}, granted,
		&quoratev1.BatchAllocateResponse{Outcomes: []*quoratev1.AllocateOutcome{
			{Outcome: &quoratev1.AllocateOutcome_Granted{Granted: granted}},
			{Outcome: &quoratev1.AllocateOutcome_Failure{Failure: &quoratev1.Failure{Message: "full"}}},
		}},
		&adminv1.GetStatusResponse{ServedBy: "n1", Term: 3},
	}
}

// TestCodecGivesStandardMessages: what one codec writes the other reads, also over what a message had before.
func TestCodecGivesStandardMessages(t *testing.T) {
	for _, m := range codecMessages() {
		encoded, err := client.Codec().Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		read := m.ProtoReflect().New().Interface()
		if err := proto.Unmarshal(encoded, read); err != nil || !proto.Equal(m, read) {
			t.Errorf("%T: the standard codec reads %v, %v", m, read, err)
		}
		standard, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		again := proto.Clone(m)
		if err := client.Codec().Unmarshal(standard, again); err != nil || !proto.Equal(m, again) {
			t.Errorf("%T: read over itself it is %v, %v", m, again, err)
		}
		unknown := append(standard, 0xfa, 0xff, 0x01, 0x01, 'x') // a field of a newer server
		if err := client.Codec().Unmarshal(unknown, again); err != nil || len(again.ProtoReflect().GetUnknown()) == 0 {
			t.Errorf("%T: an unknown field gives %v, %v", m, again, err)
		}
		if len(standard) > 0 && client.Codec().Unmarshal(standard[:len(standard)-1], again) == nil {
			t.Errorf("%T: a truncated message is read", m)
		}
	}
	if _, err := client.Codec().Marshal("text"); err == nil {
		t.Error("a text is encoded as a message")
	}
	if client.Codec().Unmarshal(nil, new(string)) == nil {
		t.Error("a message is decoded into a text")
	}
}

func BenchmarkCodec(b *testing.B) {
	granted, _ := codecMessages()[1].(*quoratev1.AllocateResponse)
	batch := &quoratev1.BatchAllocateResponse{}
	for range 512 {
		batch.Outcomes = append(batch.Outcomes,
			&quoratev1.AllocateOutcome{Outcome: &quoratev1.AllocateOutcome_Granted{Granted: granted}})
	}
	encoded, err := proto.Marshal(batch)
	if err != nil {
		b.Fatal(err)
	}
	for name, decode := range map[string]func([]byte, any) error{
		"generated": client.Codec().Unmarshal,
		"standard":  func(data []byte, m any) error { return proto.Unmarshal(data, m.(proto.Message)) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := decode(encoded, &quoratev1.BatchAllocateResponse{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
