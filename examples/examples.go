// Package examples carries configurations that people start from, so that the binary has them wherever it runs.
package examples

import _ "embed" // for the files below

// CERNName is the path of [CERN] in this repository.
const CERNName = "examples/cern.yaml"

// CERN is a laboratory that shares 100 cores among nested groups under the policy "strict".
//
//go:embed cern.yaml
var CERN []byte
