// Command validateproto prints buf/validate/validate.proto from the descriptor inside protovalidate's Go module, so
// that generating our code needs no registry.
package main

import (
	"log"
	"os"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"github.com/jhump/protoreflect/v2/protoprint"
)

func main() {
	printer := &protoprint.Printer{Compact: true}
	if err := printer.PrintProtoFile(validate.File_buf_validate_validate_proto, os.Stdout); err != nil {
		log.Fatal(err)
	}
}
