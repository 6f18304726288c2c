package main

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Statuses of errors by method and kind of answer; base.yaml has a response for each.
var (
	everyStatus = []string{"400", "401", "403", "404", "409", "429", "500", "503", "504"}
	getStatus   = []string{"405"}
	postStatus  = []string{"415"}
	lineStatus  = []string{"411", "413"}
)

// completeOperations says of each path how plain HTTP calls it, and what is answered.
func (d *document) completeOperations() error {
	for _, path := range keysOf(d.paths) {
		method, err := d.method(path)
		if err != nil {
			return err
		}
		if method.IsStreamingClient() {
			removeKeys(d.paths, path)
			continue
		}
		item := lookUp(d.paths, path)
		if post := lookUp(item, "post"); post != nil {
			describeOperation(post, method)
			completePost(post, method)
		}
		if get := lookUp(item, "get"); get != nil {
			describeOperation(get, method)
			completeGet(get, method)
		}
		if len(item.Content) == 0 {
			return fmt.Errorf("%s has no operation", path)
		}
		setKey(item, "parameters", list(reference("parameters", "Timeout"), reference("parameters", "RequestId")))
	}
	return nil
}

// describeOperation sets the name and the whole comment of a procedure: the converter makes the first line of a comment
// of several paragraphs the name.
func describeOperation(operation *yaml.Node, method protoreflect.MethodDescriptor) {
	setKey(operation, "summary", text(string(method.Name())))
	comment := method.ParentFile().SourceLocations().ByDescriptor(method).LeadingComments
	setKey(operation, "description", text(strings.TrimSpace(comment)))
}

func completePost(operation *yaml.Node, method protoreflect.MethodDescriptor) {
	removeKeys(operation, "parameters")
	setKey(operation, "requestBody", mapping(
		text("required"), yes(),
		text("content"), content("application/json", reference("schemas", string(method.Input().FullName()))),
	))
	statuses := slices.Concat(everyStatus, postStatus)
	if !method.IsStreamingServer() {
		setAnswers(operation, "The answer.", "application/json", reference("schemas", string(method.Output().FullName())),
			statuses)
		return
	}
	line := mapping(text("oneOf"), list(
		reference("schemas", string(method.Output().FullName())), reference("schemas", "StreamError")))
	setAnswers(operation, "Lines of JSON, each with one message, until the stream ends; the schema is that of a line. "+
		"A line with an error is the last one, and a stream without such a line has ended well.",
		"application/x-ndjson", line, slices.Concat(statuses, lineStatus))
}

// completeGet describes a read whose message is in the query.
func completeGet(operation *yaml.Node, method protoreflect.MethodDescriptor) {
	message := mapping(
		text("name"), text("message"), text("in"), text("query"),
		text("required"), yes(),
		text("description"), text("The request as JSON."),
		text("content"), content("application/json", reference("schemas", string(method.Input().FullName()))),
	)
	setKey(operation, "parameters",
		list(message, reference("parameters", "Encoding"), reference("parameters", "Connect")))
	setAnswers(operation, "The answer.", "application/json", reference("schemas", string(method.Output().FullName())),
		slices.Concat(everyStatus, getStatus))
}

func setAnswers(operation *yaml.Node, description, mediaType string, schema *yaml.Node, statuses []string) {
	answers := mapping(text("200"), mapping(
		text("description"), text(description),
		text("headers"), mapping(text("X-Request-Id"), reference("headers", "RequestId")),
		text("content"), content(mediaType, schema),
	))
	for _, status := range slices.Sorted(slices.Values(statuses)) {
		setKey(answers, status, reference("responses", status))
	}
	setKey(operation, "responses", answers)
}

func content(mediaType string, schema *yaml.Node) *yaml.Node {
	return mapping(text(mediaType), mapping(text("schema"), schema))
}
