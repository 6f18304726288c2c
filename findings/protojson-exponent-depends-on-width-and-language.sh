#!/usr/bin/env bash
# One would believe: "5e2" is one value of an integer field in the JSON of protobuf, whatever the language and the
# width. The specification allows exponents, and Go and protobuf-es both pass the conformance suite.
# What happens (google.golang.org/protobuf v1.36.12, @bufbuild/protobuf 2.17.0 on Node 20): Go reads "5e2" as 500 for
# int32 and int64. protobuf-es reads it as 500 for int32 and refuses it for int64, as "out of range", and refuses "1.0"
# likewise; the bare number 5e2 is 500 for both. So a document that one server takes is refused by another, and moving a
# field from int32 to int64, which is compatible on the wire, changes which documents are valid.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >go.mod <<'MOD'
module finding

go 1.26

require google.golang.org/protobuf v1.36.12
MOD
cat >main.go <<'GO'
package main

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func verdict(value any, err error) any {
	if err != nil {
		return "refused"
	}
	return value
}

func main() {
	for _, text := range []string{`"5e2"`, `"1.0"`, `5e2`} {
		var narrow wrapperspb.Int32Value
		var wide wrapperspb.Int64Value
		narrowErr, wideErr := protojson.Unmarshal([]byte(text), &narrow), protojson.Unmarshal([]byte(text), &wide)
		fmt.Printf("go %s: int32 %v, int64 %v\n", text, verdict(narrow.Value, narrowErr), verdict(wide.Value, wideErr))
	}
}
GO
cat >main.mjs <<'JS'
import { fromJsonString } from "@bufbuild/protobuf";
import { Int32ValueSchema, Int64ValueSchema } from "@bufbuild/protobuf/wkt";

const verdict = (schema, text) => {
  try {
    return String(fromJsonString(schema, text).value);
  } catch {
    return "refused";
  }
};
for (const text of ['"5e2"', '"1.0"', "5e2"]) {
  console.log(`es ${text}: int32 ${verdict(Int32ValueSchema, text)}, int64 ${verdict(Int64ValueSchema, text)}`);
}
JS
go mod tidy >/dev/null 2>&1
npm install --silent --no-save @bufbuild/protobuf@2.17.0 >/dev/null
{ go run . && node main.mjs; } | tee seen
diff seen - <<'SEEN'
go "5e2": int32 500, int64 500
go "1.0": int32 1, int64 1
go 5e2: int32 500, int64 500
es "5e2": int32 500, int64 refused
es "1.0": int32 1, int64 refused
es 5e2: int32 500, int64 500
SEEN
echo "as described"
