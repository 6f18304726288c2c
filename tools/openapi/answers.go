package main

import (
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// requireAnswered requires, in messages that are only answered, the fields that answers and details of errors always
// have: all but messages, choices and those that may be unset.
func (d *document) requireAnswered() error {
	answered, sent := map[string]bool{}, map[string]bool{}
	for _, path := range keysOf(d.paths) {
		item := lookUp(d.paths, path)
		for _, verb := range []string{"get", "post"} {
			operation := lookUp(item, verb)
			if operation == nil {
				continue
			}
			if err := d.reach(mapping(text("200"), lookUp(operation, "responses", "200")), answered); err != nil {
				return err
			}
			if err := d.reachRequests(operation, sent); err != nil {
				return err
			}
		}
	}
	if err := d.reach(lookUp(d.base, "components", "responses"), answered); err != nil {
		return err
	}
	for _, name := range keysOf(d.schemas) {
		if !answered[name] || sent[name] {
			continue
		}
		found, err := d.files.FindDescriptorByName(protoreflect.FullName(name))
		if err != nil {
			continue // of base.yaml
		}
		if message, ok := found.(protoreflect.MessageDescriptor); ok {
			requireFields(lookUp(d.schemas, name), message)
		}
	}
	return nil
}

func (d *document) reachRequests(operation *yaml.Node, sent map[string]bool) error {
	for _, key := range []string{"parameters", "requestBody"} {
		if part := lookUp(operation, key); part != nil {
			if err := d.reach(part, sent); err != nil {
				return err
			}
		}
	}
	return nil
}

func requireFields(schema *yaml.Node, message protoreflect.MessageDescriptor) {
	var names []string
	for i := range message.Fields().Len() {
		if field := message.Fields().Get(i); !field.HasPresence() {
			names = append(names, field.JSONName())
		}
	}
	if len(names) > 0 {
		setKey(schema, "required", words(names...))
	}
}
