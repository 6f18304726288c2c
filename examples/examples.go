// Package examples carries the demo and configurations that people start from, so that the binary has them wherever
// it runs.
package examples

import _ "embed" // for the files below

// CERN is a laboratory that shares 100 cores among nested groups under the policy "strict".
//
//go:embed cern.yaml
var CERN string

// Demo is a script for bash that plays CERN on three real servers and kills their leader. It runs the program that the
// environment variable QUORATE names, and takes the text of CERN from CERN_YAML.
//
//go:embed demo.sh
var Demo string
