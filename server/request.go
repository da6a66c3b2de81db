package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir"

	"github.com/go-playground/validator/v10"
	"github.com/labstack/echo/v4"
)

// maxBody bounds a request's body; a script is text that a person wrote.
const maxBody = 4 << 20

// decode reads a request's JSON object into the struct that to points to. Every field
// that is unknown, of a wrong type, or against its validate tag, is named. A body that
// is absent is an empty object. q has read the query parameters that the path takes.
func (s *Server) decode(c echo.Context, q *queryReader, to any) error {
	if err := q.done(); err != nil {
		return err
	}
	body, err := readBody(c)
	if err != nil {
		return err
	}
	fields := map[string]json.RawMessage{}
	if len(body) > 0 {
		if fields, err = object(body); err != nil {
			return err
		}
	}
	faults := fill(to, fields)
	if len(faults) == 0 {
		faults = faultsOf(s.validator.Struct(to))
	}
	if len(faults) > 0 {
		return refuse(http.StatusBadRequest, "", faults...)
	}
	return nil
}

// readBody reads the body, nil if it is empty, of a request that may carry JSON.
func readBody(c echo.Context) ([]byte, error) {
	r := c.Request()
	body, err := io.ReadAll(http.MaxBytesReader(c.Response(), r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, refuse(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", maxBody))
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "the body could not be read to its end")
	case len(body) == 0 && r.Header.Get("Content-Type") == "":
		return nil, nil
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return nil, refuse(http.StatusUnsupportedMediaType, "the body must be JSON: send it with Content-Type: application/json")
	}
	return bytes.TrimSpace(body), nil
}

// object reads one JSON object, none of whose keys is repeated, and nothing after it.
func object(body []byte) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	var syntax *json.SyntaxError
	err := json.Unmarshal(body, &fields)
	switch {
	case errors.As(err, &syntax):
		before := body[:min(int(syntax.Offset), len(body))]
		line := bytes.Count(before, []byte("\n")) + 1
		column := len(before) - (bytes.LastIndexByte(before, '\n') + 1)
		return nil, refuse(http.StatusBadRequest, fmt.Sprintf("the body is not JSON: line %d, column %d: %v", line, column, syntax))
	case err != nil, fields == nil:
		return nil, refuse(http.StatusBadRequest, "the body must be one JSON object")
	}
	if faults := repeatedKeys(body); len(faults) > 0 {
		return nil, refuse(http.StatusBadRequest, "", faults...)
	}
	return fields, nil
}

// repeatedKeys names the keys that an object holds twice, at any depth: which of the
// values is meant cannot be known. The body is valid JSON.
func repeatedKeys(body []byte) (faults []Fault) {
	type level struct {
		path  string
		keys  map[string]int // how often each came; nil: a list
		key   string         // the last one
		value bool           // what comes next is its value
	}
	var open []level
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		if err != nil {
			return faults // io.EOF
		}
		top := len(open) - 1
		delim, nested := token.(json.Delim)
		text, isText := token.(string)
		if nested && (delim == '}' || delim == ']') {
			open = open[:top]
			continue
		}
		path := ""
		if top >= 0 {
			l := &open[top]
			if isText && l.keys != nil && !l.value {
				if l.keys[text]++; l.keys[text] == 2 {
					faults = append(faults, Fault{Field: shown(within(l.path, text)), Message: "is given more than once", Hint: "say it once"})
				}
				l.key, l.value = text, true
				continue
			}
			path, l.value = l.path, false
			if l.keys != nil {
				path = within(path, l.key)
			}
		}
		if nested {
			l := level{path: path}
			if delim == '{' {
				l.keys = map[string]int{}
			}
			open = append(open, l)
		}
	}
}

// within names a key of the object at path.
func within(path, key string) string {
	if key == "" {
		key = `""`
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// fill sets the fields of a struct by their JSON names, which must match to the letter.
func fill(to any, fields map[string]json.RawMessage) []Fault {
	v := reflect.ValueOf(to).Elem()
	var faults []Fault
	var names []string
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		names = append(names, name)
		raw, ok := fields[name]
		if !ok {
			continue
		}
		delete(fields, name)
		if err := json.Unmarshal(raw, v.Field(i).Addr().Interface()); err != nil {
			faults = append(faults, typeFault(name, v.Field(i).Type(), raw, err))
		} else if v.Field(i).Kind() == reflect.String && !isText(v.Field(i).String()) {
			faults = append(faults, Fault{Field: name, Message: "holds a NUL character"})
		} else if string(raw) == "null" {
			faults = append(faults, Fault{Field: name, Message: "is null", Hint: "leave it out"})
		}
	}
	unknown := make([]string, 0, len(fields))
	for name := range fields {
		unknown = append(unknown, name)
	}
	slices.Sort(unknown)
	hint := "the fields are " + strings.Join(names, ", ")
	if len(names) == 0 {
		hint = "this request takes none"
	}
	for _, name := range unknown {
		faults = append(faults, Fault{Field: shown(name), Message: "is unknown", Hint: hint})
	}
	return faults
}

// shown cuts a name that a user made up.
func shown(name string) string {
	if len(name) > 64 {
		return name[:64] + "…"
	}
	return name
}

func typeFault(name string, t reflect.Type, raw json.RawMessage, err error) Fault {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	want := map[reflect.Kind]string{
		reflect.String: "a string", reflect.Int: "a whole number", reflect.Int64: "a whole number", reflect.Bool: "true or false", reflect.Slice: "an object",
	}[t.Kind()]
	if want == "" {
		return Fault{Field: name, Message: err.Error()}
	}
	return Fault{Field: name, Message: "is " + shown(string(raw)) + ": give " + want}
}

// newValidator knows the validate tags of requests.
func newValidator() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(func(f reflect.StructField) string {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return name
	})
	for tag, valid := range map[string]func(string) bool{"jobname": validJobName, "snapshotname": validName} {
		err := v.RegisterValidation(tag, func(fl validator.FieldLevel) bool { return valid(fl.Field().String()) })
		if err != nil {
			panic("server: " + err.Error()) // the tags are ours
		}
	}
	return v
}

// faultsOf says what a validator found.
func faultsOf(err error) []Fault {
	var wrong validator.ValidationErrors
	if !errors.As(err, &wrong) {
		return nil
	}
	faults := make([]Fault, len(wrong))
	for i, w := range wrong {
		faults[i] = Fault{Field: w.Field(), Message: rule(w)}
	}
	return faults
}

func rule(w validator.FieldError) string {
	switch w.Tag() {
	case "required":
		return "is missing"
	case "min", "gte":
		return fmt.Sprintf("is %v: give %s or more", w.Value(), w.Param())
	case "max", "lte":
		return fmt.Sprintf("is %v: give %s or less", w.Value(), w.Param())
	case "oneof":
		return fmt.Sprintf("is %q: give one of %s", w.Value(), strings.ReplaceAll(w.Param(), " ", ", "))
	case "jobname":
		return fmt.Sprintf("is %q: names match [a-z0-9][a-z0-9_-]{0,62} and do not begin with job_", w.Value())
	case "snapshotname":
		return fmt.Sprintf("is %q: names match [a-z0-9][a-z0-9_-]{0,62}", w.Value())
	}
	return fmt.Sprintf("is %v: it must be %s %s", w.Value(), w.Tag(), w.Param())
}

// param reads a parameter of the path, decoded once.
func param(c echo.Context, name string) string {
	value := c.Param(name)
	if c.Request().URL.RawPath == "" {
		return value // the router saw the decoded path
	}
	if decoded, err := url.PathUnescape(value); err == nil {
		return decoded
	}
	return value
}

// A queryReader reads query parameters, and collects what is wrong with them.
type queryReader struct {
	c      echo.Context
	known  []string
	faults []Fault
}

func query(c echo.Context) *queryReader { return &queryReader{c: c} }

// text reads a parameter.
func (q *queryReader) text(name string) string {
	q.known = append(q.known, name)
	values := q.c.QueryParams()[name]
	switch {
	case len(values) == 0:
		return ""
	case len(values) > 1:
		q.fault(name, fmt.Sprintf("is given %d times: say it once", len(values)))
		return ""
	case !isText(values[0]):
		q.fault(name, "is not UTF-8 text")
		return ""
	}
	return values[0]
}

// list reads a parameter that may be repeated, or hold several values with commas between.
func (q *queryReader) list(name string) []string {
	q.known = append(q.known, name)
	var out []string
	for _, value := range q.c.QueryParams()[name] {
		out = append(out, strings.Split(value, ",")...)
	}
	return out
}

// number reads a whole number between least and most; absent, it is standard.
func (q *queryReader) number(name string, standard, least, most int64) int64 {
	text := q.text(name)
	if text == "" {
		return standard
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		q.fault(name, fmt.Sprintf("is %q: give a whole number from %d to %d", shown(text), least, most))
		return standard
	}
	return n
}

// duration reads a duration between 0 and most.
func (q *queryReader) duration(name string, most time.Duration) time.Duration {
	text := q.text(name)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > most {
		q.fault(name, fmt.Sprintf("is %q: give a duration such as 30s, %v at most", shown(text), most))
	}
	return d
}

// flag reads true or false.
func (q *queryReader) flag(name string) bool {
	switch text := q.text(name); text {
	case "", "false":
		return false
	case "true":
		return true
	default:
		q.fault(name, fmt.Sprintf("is %q: give true or false", shown(text)))
		return false
	}
}

func (q *queryReader) fault(name, message string) {
	q.faults = append(q.faults, Fault{Field: name, Message: message})
}

// done gives what is wrong, parameters that nobody read included.
func (q *queryReader) done() error {
	if _, err := url.ParseQuery(q.c.Request().URL.RawQuery); err != nil {
		return refuse(http.StatusBadRequest, "the query cannot be read: it is made of name=value, other characters are written %XX")
	}
	var unknown []string
	for name := range q.c.QueryParams() {
		if !slices.Contains(q.known, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		hint := "this path takes none"
		if len(q.known) > 0 {
			hint = "this path takes " + strings.Join(q.known, ", ")
		}
		q.faults = append(q.faults, Fault{Field: shown(name), Message: "is an unknown query parameter", Hint: hint})
	}
	if len(q.faults) > 0 {
		return refuse(http.StatusBadRequest, "", q.faults...)
	}
	return nil
}

// jobOf returns the job that the path names, unless something is wrong with the query.
func (s *Server) jobOf(c echo.Context, q *queryReader) (weir.Job, error) {
	if err := q.done(); err != nil {
		return weir.Job{}, err
	}
	return s.deps.Service.Get(c.Request().Context(), param(c, "job"))
}
