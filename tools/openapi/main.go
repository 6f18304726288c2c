// Command openapi is a plugin of buf that describes the public API as an OpenAPI document: protoc-gen-connect-openapi
// converts the schema, and what this API answers otherwise, or what the converter cannot say, is changed here.
//
// base.yaml has what no schema says: title, servers, credentials, errors and statuses. The procedures whose callers
// stream are left out, because plain HTTP cannot call them.
package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/bufbuild/protoplugin"
	"github.com/sudorandom/protoc-gen-connect-openapi/converter"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// documentName is the file that the plugin writes.
const documentName = "openapi.yaml"

func main() { protoplugin.Main(protoplugin.HandlerFunc(generate)) }

// generate converts the schema and completes the result.
func generate(
	_ context.Context, _ protoplugin.PluginEnv, out protoplugin.ResponseWriter, in protoplugin.Request,
) error {
	request := in.CodeGeneratorRequest()
	for _, file := range request.GetProtoFile() {
		trimComments(file)
	}
	request.Parameter = proto.String(
		"path=" + documentName + ",allow-get,with-streaming,features=connectrpc;protovalidate")
	response, err := converter.Convert(request)
	if err != nil {
		return fmt.Errorf("converting the schema: %w", err)
	}
	files, err := in.AllFiles()
	if err != nil {
		return fmt.Errorf("reading the schema: %w", err)
	}
	text, err := complete([]byte(response.GetFile()[0].GetContent()), files)
	if err != nil {
		return err
	}
	out.SetFeatureProto3Optional()
	out.AddFile(documentName, string(text))
	return nil
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
