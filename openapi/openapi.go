// Package openapi embeds the OpenAPI 3 document of the HTTP API. It is generated from
// package server's comments and types: go run ./openapi/gen
package openapi

import (
	_ "embed" // the document
)

//go:embed openapi.json
var document string

// Document returns the document as JSON.
func Document() []byte { return []byte(document) }
