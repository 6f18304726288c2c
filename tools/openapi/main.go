// Command openapi is a plugin of buf that describes the public API as an OpenAPI document: protoc-gen-connect-openapi
// converts the schema, and what this API answers otherwise, or what the converter cannot say, is changed here.
//
// base.yaml has what no schema says: title, servers, credentials, errors and statuses. The procedures whose callers
// stream are left out, because plain HTTP cannot call them.
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/sudorandom/protoc-gen-connect-openapi/converter"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// documentName is the file that the plugin writes.
const documentName = "openapi.yaml"

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(in io.Reader, out io.Writer) error {
	data, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("reading the request of buf: %w", err)
	}
	request := &pluginpb.CodeGeneratorRequest{}
	if err := proto.Unmarshal(data, request); err != nil {
		return fmt.Errorf("decoding the request of buf: %w", err)
	}
	response, err := generate(request)
	if err != nil {
		response = &pluginpb.CodeGeneratorResponse{Error: proto.String(err.Error())}
	}
	data, err = proto.Marshal(response)
	if err != nil {
		return fmt.Errorf("encoding the answer to buf: %w", err)
	}
	if _, err := out.Write(data); err != nil {
		return fmt.Errorf("writing the answer to buf: %w", err)
	}
	return nil
}

// generate converts the schema and completes the result.
func generate(request *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorResponse, error) {
	for _, file := range request.GetProtoFile() {
		trimComments(file)
	}
	request.Parameter = proto.String(
		"path=" + documentName + ",allow-get,with-streaming,features=connectrpc;protovalidate")
	response, err := converter.Convert(request)
	if err != nil {
		return nil, fmt.Errorf("converting the schema: %w", err)
	}
	files, err := protodesc.NewFiles(&descriptorpb.FileDescriptorSet{File: request.GetProtoFile()})
	if err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	converted := response.GetFile()[0]
	text, err := complete([]byte(converted.GetContent()), files)
	if err != nil {
		return nil, err
	}
	converted.Content = proto.String(string(text))
	return response, nil
}

// trimComments removes the blank after // from each line of a comment: the converter does so for the first line only.
func trimComments(file *descriptorpb.FileDescriptorProto) {
	for _, location := range file.GetSourceCodeInfo().GetLocation() {
		if location.LeadingComments == nil {
			continue
		}
		lines := strings.Split(location.GetLeadingComments(), "\n")
		for i, line := range lines {
			lines[i] = strings.TrimPrefix(line, " ")
		}
		location.LeadingComments = proto.String(strings.Join(lines, "\n"))
	}
}
