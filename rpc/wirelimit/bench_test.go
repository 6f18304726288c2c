package wirelimit_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// BenchmarkScan compares the scan with decoding.
func BenchmarkScan(b *testing.B) {
	m := &quoratev1.BatchAllocateRequest{}
	for i := range 500 {
		m.Requests = append(m.GetRequests(), &quoratev1.AllocateRequest{
			Id: fmt.Sprintf("job-%d", i), Labels: map[string]string{"owner": "someone", "stage": "test"},
			Claims: []*quoratev1.Claim{
				{Tree: "cern", Node: "physics/higgs", Amounts: map[string]int64{"cores": 8, "memory": 1 << 34}},
			},
		})
	}
	c := newChecker(b, generous, m)
	binary, text := encode(b, m)
	d := m.ProtoReflect().Descriptor()
	for name, run := range map[string]func() error{
		"binary/scan":   func() error { _, err := c.Binary(binary, d); return err },
		"binary/decode": func() error { return proto.Unmarshal(binary, &quoratev1.BatchAllocateRequest{}) },
		"json/scan":     func() error { _, err := c.JSON(text, d); return err },
		"json/decode":   func() error { return protojson.Unmarshal(text, &quoratev1.BatchAllocateRequest{}) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
