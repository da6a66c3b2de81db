// Command gen writes openapi/openapi.json: swag reads the comments and types of package
// server into a Swagger 2 document, which kin-openapi turns into OpenAPI 3. What
// neither can say is added here.
//
//	go run ./openapi/gen
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
	"github.com/getkin/kin-openapi/openapi3"

	"weir/checkpoint"
)

const target = "openapi/openapi.json"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "openapi/gen:", err)
		os.Exit(1)
	}
}

func run() error {
	folder, err := os.MkdirTemp("", "weir-openapi-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a temporary folder
	swagger, err := swag(folder)
	if err != nil {
		return err
	}
	doc, err := convert(swagger)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return err
	}
	loaded, err := openapi3.NewLoader().LoadFromData(out.Bytes())
	if err != nil {
		return err
	}
	if err := loaded.Validate(context.Background()); err != nil {
		return err
	}
	return os.WriteFile(target, out.Bytes(), 0o644)
}

// swag runs the tool of that name, which tools/go.mod pins.
func swag(folder string) ([]byte, error) {
	overrides := filepath.Join(folder, "overrides")
	text := "replace weir/server.checkpointJSON weir/server.CheckpointOptions\nreplace weir/server.restartJSON weir/server.RestartOptions\n"
	if err := os.WriteFile(overrides, []byte(text), 0o644); err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "tool", "-modfile=tools/go.mod", "swag", "init", "--dir", "server", "--generalInfo", "server.go",
		"--output", folder, "--outputTypes", "json", "--requiredByDefault", "--overridesFile", overrides, "--exclude", "server/job", "--quiet")
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("swag: %w\n%s", err, said)
	}
	return os.ReadFile(filepath.Join(folder, "swagger.json"))
}

// convert makes the OpenAPI 3 document.
func convert(swagger []byte) (*openapi3.T, error) {
	var v2 openapi2.T
	if err := json.Unmarshal(swagger, &v2); err != nil {
		return nil, fmt.Errorf("what swag wrote: %w", err)
	}
	doc, err := openapi2conv.ToV3(&v2)
	if err != nil {
		return nil, fmt.Errorf("to OpenAPI 3: %w", err)
	}
	doc.OpenAPI = "3.0.3"
	doc.Info = &openapi3.Info{
		Title: "Weir", Version: "1",
		Description: "SQL over streams that never loses count. Errors are application/problem+json (RFC 9457). " +
			"Times are RFC 3339 in UTC; durations are strings like \"1s\" in requests and milliseconds in answers; sizes are bytes. Unknown fields are refused by name.",
		License: &openapi3.License{Name: "Apache-2.0"},
	}
	doc.Servers = openapi3.Servers{{URL: "/"}}
	for route, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			op.OperationID = operationID(method, route)
			finish(op)
		}
	}
	for name, schema := range doc.Components.Schemas {
		if strings.HasSuffix(name, "Request") { // unknown fields are refused
			closed := false
			schema.Value.AdditionalProperties = openapi3.AdditionalProperties{Has: &closed}
		}
	}
	freeForm(doc)
	moments(doc)
	reasons(doc)
	return doc, nil
}

// reasons gives the closed list of why a checkpoint fails, which is the code's, and the
// statuses to the filters of its history.
func reasons(doc *openapi3.T) {
	var all []any
	for _, reason := range checkpoint.Reasons() {
		all = append(all, reason)
	}
	doc.Components.Schemas["CheckpointFailure"].Value.Properties["reason"].Value.Enum = all
	for _, route := range []string{"/v1/jobs/{job}/checkpoints", "/v1/jobs/{job}/checkpoints/summary"} {
		of := doc.Paths.Value(route).Get.Parameters
		of.GetByInAndName("query", "reason").Schema.Value.Items.Value.Enum = all
		of.GetByInAndName("query", "status").Schema.Value.Items.Value.Enum = doc.Components.Schemas["Checkpoint"].Value.Properties["status"].Value.Enum
	}
}

// operationID names an operation by its method and path: getV1JobsJob.
func operationID(method, route string) string {
	id := strings.ToLower(method)
	for part := range strings.FieldsFuncSeq(route, func(r rune) bool { return strings.ContainsRune("/{}_", r) }) {
		id += strings.ToUpper(part[:1]) + part[1:]
	}
	return id
}

// finish adds the problem that any operation may answer, and makes streams text.
func finish(op *openapi3.Operation) {
	if op.RequestBody != nil {
		for _, media := range op.RequestBody.Value.Content {
			media.Example = example(media.Schema.Ref)
		}
	}
	for status, response := range op.Responses.Map() {
		if strings.HasPrefix(status, "2") && response.Value.Content == nil && status != "204" {
			response.Value.Content = openapi3.Content{}
		}
		if stream := response.Value.Content["text/event-stream"]; stream != nil {
			response.Value.Content["text/event-stream"] = openapi3.NewMediaType().WithSchema(openapi3.NewStringSchema())
		}
	}
	op.Responses.Set("default", &openapi3.ResponseRef{Value: openapi3.NewResponse().
		WithDescription("A problem: 400 malformed, 403 foreign, 404 unknown, 409 not allowed in this state, 413, 415, 422 SQL or options refused, 429 as many jobs as the cluster takes, 503 try again").
		WithContent(openapi3.Content{"application/problem+json": openapi3.NewMediaType().WithSchemaRef(openapi3.NewSchemaRef("#/components/schemas/Problem", nil))})})
}

// moments marks times as such.
func moments(doc *openapi3.T) {
	for _, schema := range doc.Components.Schemas {
		for name, property := range schema.Value.Properties {
			if name == "at" || name == "watermark" || strings.HasSuffix(name, "_at") {
				property.Value.Format = "date-time"
			}
		}
	}
}

// example is what a body is shown as, and what "Try it out" sends: the least that works.
func example(schema string) any {
	switch path.Base(schema) {
	case "JobRequest":
		return map[string]any{"name": "behaviors", "sql": "SELECT behavior, COUNT(*) AS n FROM user_behavior GROUP BY behavior"}
	case "StartRequest":
		return map[string]any{"from": "latest"}
	case "StopRequest", "CancelRequest", "SavepointRequest":
		return map[string]any{}
	}
	return nil // that of the fields
}

// freeForm lets objects without properties, rows and details, have any.
func freeForm(doc *openapi3.T) {
	open := true
	for _, schema := range doc.Components.Schemas {
		for _, property := range schema.Value.Properties {
			for _, s := range []*openapi3.SchemaRef{property, property.Value.Items} {
				if s != nil && s.Ref == "" && s.Value.Type.Is("object") && len(s.Value.Properties) == 0 && s.Value.AdditionalProperties.Schema == nil {
					s.Value.AdditionalProperties = openapi3.AdditionalProperties{Has: &open}
				}
			}
		}
	}
}
